/** Dialogs: a new game, and a record to load. */

import {html, useEffect, useRef, useState} from "./vendor/htm/standalone.module.js";
import * as api from "./api.js";
import {problemText} from "./problem_text.js";

/** Bytes of a file that is read at most, and characters of one record: the server takes no more of these. */
const FILE = 64 * 1024 * 1024;
const RECORD = 1024 * 1024;

const refused = (code, field, detail) => new api.Problem(0, {code, field, detail});

/** A modal dialog that Escape closes; the focus stays in it, and goes back to where it was. */
function Modal({title, testid, onClose, children}) {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before.focus();
  }, []);
  return html`<dialog ref=${box} data-testid=${testid} aria-label=${title} onCancel=${(event) => (event.preventDefault(), onClose())}>
    <h2>${title}</h2>${children}</dialog>`;
}

/** Why the server would not have it. */
function Refusal({problem, t}) {
  if (!problem) return null;
  return html`<p class="error" role="alert" data-testid="dialog-problem">${problemText(problem, t)}</p>`;
}

/** What an option's input holds, as a value of JSON: undefined for its default. */
function optionValue(option, text) {
  if (text === undefined || text === "") return undefined;
  if (typeof option.default === "boolean") return text === "true";
  if (Array.isArray(option.default)) return text.split(/[\s,]+/).filter(Boolean).map(Number);
  const same = (option.choices || []).find((choice) => String(choice) === text);
  if (same !== undefined) return same;
  if (typeof option.default === "string") return text;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

const plain = (value) => (value === null || value === undefined ? "" : Array.isArray(value) ? value.join(", ") : String(value));

/**
 * `from`: a table to play on from after `ply`; else a new game. `first` may name the game, preset,
 * seats and options to begin with.
 */
export function NewGameDialog({from, ply, playing, first, onBegin, onClose, t}) {
  const [games, setGames] = useState(null);
  const [name, setName] = useState("");
  const [wantedPreset, setPreset] = useState("");
  const [texts, setTexts] = useState({});
  const [table, setTable] = useState(null); // players, teams, who
  const [seats, setSeats] = useState([]);
  const [seed, setSeed] = useState("");
  const [position, setPosition] = useState("");
  const [problem, setProblem] = useState(null);
  const [sending, setSending] = useState(false);
  const game = games && games.find((one) => one.name === name);
  const preset = game ? (wantedPreset in game.presets ? wantedPreset : Object.keys(game.presets)[0]) : "";
  const gameBox = useRef(null);
  useEffect(() => gameBox.current?.focus(), [games]);

  useEffect(() => {
    if (from) return;
    api.choices().then(({games: found}) => {
      setGames(found);
      const known = found.some((one) => one.name === first.game);
      setName(known ? first.game : found[found.length - 1].name);
      setPreset(known && first.preset ? first.preset : "");
      setPosition(known && first.position ? first.position : "");
    }, setProblem);
  }, []);

  const options = {};
  for (const option of game ? game.options : []) {
    const value = optionValue(option, texts[option.name]);
    if (value !== undefined) options[option.name] = value;
  }
  const wanted = from ? {game: from.game, options: from.rules} : {game: name, options, preset};
  const key = JSON.stringify(wanted);

  // Who can sit there follows from the rules, which only the server knows.
  useEffect(() => {
    if (!wanted.game) return undefined;
    let current = true;
    const timer = setTimeout(() => api.check(wanted).then((found) => {
      if (!current) return;
      setProblem(null);
      setTable({...found, key});
      setSeats((old) => seated(found, old, from));
    }, (error) => current && (setProblem(error), setTable(null))), 150);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);

  async function begin(event) {
    event.preventDefault();
    if (!ready || sending) return;
    setSending(true);
    setProblem(null);
    const people = seats.map(({kind, name: who, simulations, temperature}) => {
      if (kind === "human") return {kind};
      const searching = kind === "model" && simulations ? {simulations: Number(simulations)} : {};
      return {kind, name: who, ...searching, ...(kind !== "bot" && temperature ? {temperature: Number(temperature)} : {})};
    });
    const chosen = from ? {from: from.id, ply} : {...wanted, ...(seed ? {seed: Number(seed)} : {}), ...(position.trim() ? {position} : {})};
    try {
      await onBegin({...chosen, seats: people});
    } catch (error) {
      setSending(false);
      setProblem(error);
    }
  }

  const ready = table && table.key === key;
  const title = from ? t("new.play_on", {ply}) : t("new.title");
  const change = (seat, changes) => setSeats(seats.map((old, i) => (i === seat ? {...old, ...changes} : old)));
  return html`<${Modal} title=${title} testid="new-game-dialog" onClose=${onClose}>
    <form onSubmit=${begin}>
      ${!from && game && html`<div class="fields">
          <label>${t("new.game")} <select ref=${gameBox} data-testid="game" value=${name} onChange=${(event) => (setName(event.target.value), setPreset(""), setTexts({}))}>
            ${games.map((one) => html`<option key=${one.name} value=${one.name}>${t(`game.${one.name}`)}</option>`)}</select></label>
          <label>${t("new.preset")} <select data-testid="preset" value=${preset} onChange=${(event) => (setPreset(event.target.value), setTexts({}))}>
            ${Object.keys(game.presets).map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select></label>
          <label>${t("new.seed")} <input data-testid="seed" inputmode="numeric" pattern="[0-9]*" value=${seed} onInput=${(event) => setSeed(event.target.value)} /></label>
        </div>
        ${seed && html`<p class="small dim">${t("new.seed_open")}</p>`}
        <details><summary>${t("new.options")}</summary><div class="fields">
          ${game.options.map((option) => html`<${Option} key=${`${name}.${option.name}`} option=${option} text=${texts[option.name]}
            preset=${(game.presets[preset] || {})[option.name]} onText=${(text) => setTexts({...texts, [option.name]: text})} t=${t} />`)}
          </div>
          <label class="small">${t("new.position")} <textarea data-testid="position-input" value=${position} onInput=${(event) => setPosition(event.target.value)}></textarea></label>
        </details>`}
      ${table && html`<div><h3 class="small">${t("new.seats")}</h3>
        ${seats.map((seat, i) => html`<${SeatRow} key=${i} seat=${seat} at=${i} team=${table.teams[i]} who=${table.who} partners=${new Set(table.teams).size < table.players}
          onChange=${(changes) => change(i, changes)} t=${t} />`)}</div>`}
      <${Refusal} problem=${problem} t=${t} />
      ${playing && html`<p class="small dim">${t("new.given_up")}</p>`}
      <div class="row"><button type="submit" class="main" data-testid="start" disabled=${!ready || sending}>${t("new.start")}</button>
        <button type="button" data-testid="dialog-cancel" onClick=${onClose}>${t("new.cancel")}</button>
        ${sending && html`<span class="busy small">${t("page.loading")}</span>`}</div>
    </form>
  </${Modal}>`;
}

/** Who sits at a table of these seats: as before where that is possible, else you and machines. */
function seated(table, old, from) {
  const fits = ({kind, name}) => kind === "human" || table.who.some((one) => one.name === name && (one.kind === "bot") === (kind === "bot"));
  const best = table.who.find((one) => one.name === table.default);
  const machine = {kind: best.kind, name: best.name, simulations: "", temperature: ""};
  const before = from && !old.length ? from.seats.map((s) => ({...s, simulations: plain(s.simulations), temperature: s.temperature ? plain(s.temperature) : ""})) : old;
  return Array.from({length: table.players}, (_, i) => {
    if (before[i] && fits(before[i])) return before[i];
    return i ? machine : {...machine, kind: "human", name: ""};
  });
}

function Option({option, text, preset, onText, t}) {
  const given = preset === undefined ? option.default : preset;
  const id = `option-${option.name}`;
  const known = t(`option.${option.name}`);
  const label = known.startsWith("option.") ? option.name : known; // of a game that is new here
  const said = (value) => (typeof value === "boolean" ? t(`value.${value}`) : plain(value) || "–");
  const choices = typeof option.default === "boolean" ? [true, false] : option.choices;
  const [low, high] = option.range || [];
  return html`<label title=${`${option.name}: ${option.help}`}>${label}
    ${choices
      ? html`<select data-testid=${id} value=${text ?? ""} onChange=${(event) => onText(event.target.value)}>
          <option value="">${said(given)}</option>
          ${choices.filter((one) => one !== given).map((one) => html`<option key=${String(one)} value=${String(one)}>${said(one)}</option>`)}</select>`
      : html`<input data-testid=${id} type=${option.range ? "number" : "text"} min=${low} max=${high} placeholder=${said(given)} value=${text ?? ""}
          onInput=${(event) => onText(event.target.value)} />`}
  </label>`;
}

function SeatRow({seat, at, team, who, partners, onChange, t}) {
  const named = who.filter((one) => (one.kind === "bot") === (seat.kind === "bot"));
  function pick(kind) {
    const able = who.filter((one) => (one.kind === "bot") === (kind === "bot"));
    const same = able.some((one) => one.name === seat.name);
    onChange({kind, name: kind === "human" ? "" : same ? seat.name : able[0].name});
  }
  const kinds = ["human", "model", "bot", "network"].filter((kind) => kind === "human" || who.some((one) => (one.kind === "bot") === (kind === "bot")));
  const machine = seat.kind !== "human";
  return html`<div class="seat-row" role="group" aria-label=${t("new.seat", {seat: at})}>
    <strong>${t("new.seat", {seat: at})}${partners ? html`<br /><span class="small dim">${t("new.team", {team})}</span>` : ""}</strong>
    <label>${t("new.kind")} <select data-testid=${`seat-${at}-kind`} value=${seat.kind} onChange=${(event) => pick(event.target.value)}>
      ${kinds.map((kind) => html`<option key=${kind} value=${kind}>${t(`kind.${kind}`)}</option>`)}</select></label>
    ${machine && html`<label>${t("new.name")} <select data-testid=${`seat-${at}-name`} value=${seat.name} onChange=${(event) => onChange({name: event.target.value})}>
      ${named.map(({name}) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>`}
    ${seat.kind === "model" && html`<label>${t("new.simulations")} <input data-testid=${`seat-${at}-simulations`} type="number" min="1" max="4096" placeholder=${t("new.default")}
      value=${seat.simulations} onInput=${(event) => onChange({simulations: event.target.value})} /></label>`}
    ${machine && seat.kind !== "bot" && html`<label>${t("new.temperature")} <input data-testid=${`seat-${at}-temperature`} type="number" min="0" max="100" step="any" placeholder="0"
      value=${seat.temperature} onInput=${(event) => onChange({temperature: event.target.value})} /></label>`}
  </div>`;
}

export function LoadDialog({onLoad, onClose, t}) {
  const [texts, setTexts] = useState([]); // the records of a file
  const [chosen, setChosen] = useState(0);
  const [pasted, setPasted] = useState("");
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState(null);

  async function read(event) {
    const [file] = event.target.files;
    setTexts([]);
    setChosen(0);
    setProblem(null);
    if (!file) return;
    try {
      if (file.size > FILE) throw refused("too_large", "file", `at most ${FILE} bytes, got ${file.size}`);
      const text = await file.text().catch(() => {
        throw refused("invalid", "file", "it can not be read");
      });
      if (!text.trim()) throw refused("invalid", "file", "it is empty");
      setTexts(file.name.endsWith(".jsonl") ? text.split("\n").filter((line) => line.trim()) : [text]);
    } catch (error) {
      setProblem(error);
    }
  }

  async function load(event) {
    event.preventDefault();
    const record = pasted.trim() ? pasted : texts[chosen];
    if (!record || sending) return;
    setSending(true);
    setProblem(null);
    try {
      if (record.length > RECORD) throw refused("too_large", "record", `at most ${RECORD} characters, got ${record.length}`);
      await onLoad(record);
    } catch (error) {
      setSending(false);
      setProblem(error);
    }
  }

  return html`<${Modal} title=${t("load.title")} testid="load-dialog" onClose=${onClose}>
    <form onSubmit=${load}>
      <label class="small">${t("load.file")} <input type="file" data-testid="load-file" accept=".json,.jsonl,.txt,application/json,text/plain" onChange=${read} /></label>
      ${texts.length > 1 && html`<label class="small">${t("load.which", {n: chosen + 1, of: texts.length})}
        <input type="number" min="1" max=${texts.length} value=${chosen + 1} onInput=${(event) => setChosen(Math.min(Math.max(Number(event.target.value) || 1, 1), texts.length) - 1)} /></label>`}
      <label class="small">${t("load.paste")} <textarea data-testid="paste" spellcheck="false" value=${pasted} onInput=${(event) => setPasted(event.target.value)}></textarea></label>
      <${Refusal} problem=${problem} t=${t} />
      <div class="row"><button type="submit" class="main" data-testid="load-do" disabled=${sending || !(pasted.trim() || texts.length)}>${t("load.do")}</button>
        <button type="button" onClick=${onClose}>${t("new.cancel")}</button>
        ${sending && html`<span class="busy small">${t("page.loading")}</span>`}</div>
    </form>
  </${Modal}>`;
}
