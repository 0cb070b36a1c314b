/** The play page: what is on the table, what the person wants, and the server between. */

import "./session.js";
import {html, render, useCallback, useEffect, useMemo, useRef, useState} from "./vendor/htm/standalone.module.js";
import * as api from "./api.js";
import {translator} from "./i18n.js";
import {linked, unlinked} from "./link.js";
import {problemText} from "./problem_text.js";
import words from "./words.js";
import {useBoard} from "./boards.js";
import {Analysis, heatOf} from "./panels_analysis.js";
import {LoadDialog, NewGameDialog} from "./panels_dialogs.js";
import {Controls, MoveInput, Moves, Position, Replay, Seats, Status, seatNames} from "./panels.js";

const POLL_MS = 200;
const LANGUAGES = {en: "English", zh: "中文"};

/** A setting that the browser keeps; where it may not, the page forgets it. */
function useKept(name, first) {
  const [value, setValue] = useState(() => {
    try {
      return localStorage.getItem(`jaxgames.${name}`) ?? first;
    } catch {
      return first;
    }
  });
  const keep = (wanted) => {
    setValue(wanted);
    try {
      localStorage.setItem(`jaxgames.${name}`, wanted);
    } catch {
      // private windows may refuse
    }
  };
  return [value, keep];
}

/** What the address after # says: {table, viewer, game, ...}. */
const fragment = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** Makes the address that of a table as a seat sees it. */
const address = (table, viewer) => history.replaceState(null, "", `#${new URLSearchParams({table, viewer})}`);

/** Puts a text on the clipboard; a page of another machine without TLS has only the old way. */
async function clip(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const before = document.activeElement;
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  if (before) before.focus();
  if (!done) throw new api.Problem(0, {code: "forbidden", detail: "the browser keeps its clipboard to itself"});
  return undefined;
}

function App() {
  const [lang, setLang] = useKept("lang", navigator.language.startsWith("zh") ? "zh" : "en");
  const [theme, setTheme] = useKept("theme", "auto");
  const [heat, setHeat] = useKept("heat", "visits");
  const [view, setView] = useState(null);
  const [viewer, setViewer] = useState("0");
  const [at, setAt] = useState(null); // the ply looked at; null: where the game stands
  const [problem, setProblem] = useState(null);
  const [notice, setNotice] = useState("");
  const [readings, setReadings] = useState(null);
  const [dialog, setDialog] = useState(null);
  const [advice, setAdvice] = useState(null); // {key}: the position a hint was asked for
  const [asked, setAsked] = useState({model: "", simulations: "", network: false, auto: false});
  const [sending, setSending] = useState(false);
  const newest = useRef(0);
  const t = useMemo(() => translator(lang, words), [lang]);
  /** What a look would have brought was dropped; if machines move, the next one is due. */
  const lookAgain = () => setView((old) => old && {...old});

  useEffect(() => {
    document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
  }, [lang]);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);

  /** Shows what a promise of a view brings, unless something newer was asked for meanwhile; a quiet
   * one, which nobody asked for, comes before nothing that is on its way. */
  const show = useCallback(async (promise, quiet = false) => {
    const mine = quiet ? newest.current : ++newest.current;
    try {
      const found = await promise;
      if (mine !== newest.current) {
        if (quiet) lookAgain();
        return null;
      }
      if (!quiet) newest.current += 1;
      setView((old) => (found.scene ? found : {...old, ...found}));
      if (!quiet) setProblem(null);
      return found;
    } catch (error) {
      if (!(error instanceof api.Problem)) throw error;
      if (mine === newest.current) {
        if (error.code === "not_found") setView(null);
        else if (!quiet) lookAgain();
        setProblem(error);
      }
      return null;
    }
  }, []);

  /** Another table on the screen; whether it is there. If not, the one before stays. */
  const seatAt = useCallback(async (promise) => {
    const mine = ++newest.current;
    try {
      const found = await promise;
      if (mine !== newest.current) return false;
      newest.current += 1;
      // all at once: between two drawings the wishes must fit the view
      setView(found);
      setAt(found.review ? found.ply : null);
      setViewer(String(found.viewer));
      setReadings(null);
      setAdvice(null);
      setDialog(null);
      setNotice("");
      setProblem(null);
      address(found.id, found.viewer);
      return true;
    } catch (error) {
      if (!(error instanceof api.Problem)) throw error;
      lookAgain();
      setProblem(error);
      return false;
    }
  }, []);

  /** Looks at the game of a link; whether it could. */
  const follow = useCallback(async (said) => {
    let ply = 0;
    const opened = async () => {
      const found = await unlinked(said);
      ply = found.ply;
      return api.open({record: found.record});
    };
    const there = await seatAt(opened());
    if (there) setAt((first) => (first === null ? null : ply));
    return there;
  }, []);

  useEffect(() => {
    /** Goes where the address says, its code entered first; whether there is something. */
    const arrive = async () => {
      const {table, viewer: seat, code, ...more} = fragment();
      if (code) await api.enter(code).catch(setProblem); // session.js did where the page begins
      if (more.record) return follow(more);
      return Boolean(table) && seatAt(api.look(table, {viewer: seat || "0"}));
    };
    arrive().then((there) => there || setDialog({kind: "new"}));
    /** Another address in the same window; where nothing is, the game on the screen gets its own back. */
    const again = async () => {
      const there = await arrive();
      const {id: table, viewer: seat} = seen.current;
      if (!there && table) address(table, seat);
    };
    addEventListener("hashchange", again);
    return () => removeEventListener("hashchange", again);
  }, []);

  const id = view && view.id;
  const seen = useRef({});
  seen.current = {id, viewer};
  const people = useMemo(() => (view ? view.seats.flatMap((s, i) => (s.kind === "human" ? [i] : [])) : []), [view]);
  const names = useMemo(() => (view ? seatNames(view, people, t) : []), [view, people, t]);
  const live = at === null;
  const mine = Boolean(view && live && view.can.move && !sending);
  const working = Boolean(view && (view.thinking !== null || (view.job && view.job.state === "running")));
  const shown = view ? view.ply : 0;
  const goal = live ? shown : at;

  // Another ply, another seat: ask for that view.
  useEffect(() => {
    if (!id) return;
    const told = String(view.viewer) === viewer && (live ? view.ply === view.plies : view.ply === at);
    if (!told) show(api.look(id, {viewer, ply: at}));
  }, [id, viewer, at, view && view.viewer, view && view.ply, view && view.plies]);

  // While somebody thinks, look again and again.
  useEffect(() => {
    if (!working) return undefined;
    const timer = setTimeout(() => show(api.look(id, {viewer, ply: at, after: view.version}), true), POLL_MS);
    return () => clearTimeout(timer);
  }, [working, view, viewer, at]);

  // Several people at one page: who is to move looks, behind a curtain where cards are hidden.
  const other = view && live && !view.done && people.includes(view.to_move) && String(view.to_move) !== viewer;
  const curtain = Boolean(other && view.hides && !view.open);
  useEffect(() => {
    if (other && !curtain) setViewer(String(view.to_move));
  }, [other, curtain]);
  useEffect(() => {
    if (id) address(id, viewer);
  }, [viewer]);

  useEffect(() => {
    const title = view ? t(`game.${view.game}`) : t("page.title");
    document.title = `${mine ? "● " : ""}${title} · jaxgames`;
  }, [view, mine, t]);

  /** Something the person does; the game's present is shown afterwards. */
  async function act(what, body = {}) {
    setReadings(null);
    setSending(true);
    const found = await show(api.act(id, what, {viewer, ...body}));
    setSending(false);
    if (!found) return null;
    if (found.readings) setReadings(found.readings);
    if (found.scene) setAt(null);
    return found;
  }

  async function play(text) {
    if (!mine) return false;
    const found = await act("move", {seat: view.to_move, move: text, ply: view.ply});
    return Boolean(found && !found.readings);
  }

  const budget = () => ({
    model: asked.model,
    network: asked.network,
    ...(asked.simulations ? {simulations: Number(asked.simulations)} : {}),
  });
  const analysable = Boolean(view && view.legal.length && !sending);

  function analyse(ply) {
    return show(api.act(id, "analyse", {viewer, ...budget(), ...(ply === undefined ? {} : {ply})}));
  }

  function hint() {
    if (!analysable) return;
    setAdvice({key: `${id}/${shown}`});
    if (!view.analysis) analyse(shown);
  }

  // "Analyse every position I look at": one at a time, and only what is not known yet.
  const known = Boolean(view && view.analysis);
  useEffect(() => {
    if (asked.auto && analysable && !known && !working && !problem) analyse(shown);
  }, [asked.auto, id, shown, analysable, known, working]);

  /** The game as a record. It holds all hands: where these are hidden it is said what that means
   * for the game, and asked for; null where it is not wanted. */
  async function recorded() {
    if (view.hides && !view.open) {
      if (!confirm(t("page.open_sure"))) return null;
      if (!(await show(api.act(id, "open", {viewer})))) return null;
    }
    return api.record(id);
  }

  async function save() {
    try {
      const text = await recorded();
      if (text === null) return;
      const name = `${view.game}-${id.slice(0, 6).replace(/\W/g, "")}.json`;
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      setNotice(t("page.saved", {name}));
    } catch (error) {
      setProblem(error);
    }
  }

  async function share() {
    const text = await recorded();
    if (text === null) return null;
    const address = await linked(text, shown);
    if (address === null) setNotice(t("page.link_long"));
    return address;
  }

  async function copy(promise) {
    try {
      const text = await promise;
      if (text === null) return;
      await clip(text);
      setNotice(t("page.copied", {n: text.length}));
    } catch (error) {
      setProblem(error);
    }
  }

  /** Leaves the table for another; throws the Problem that prevents it. */
  async function begin({from, ...wanted}) {
    const found = await (from ? api.act(from, "branch", wanted) : api.open(wanted));
    await seatAt(Promise.resolve(found));
    if (id && id !== from) api.close(id).catch(() => {}); // it may have expired
  }

  // Keys that work wherever nothing is being typed.
  useEffect(() => {
    function onKey(event) {
      const typing = event.target.closest("input, textarea, select, dialog, [data-keys]");
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const jump = (by) => view && setAt(Math.min(Math.max(goal + by, 0), view.plies));
      const keys = {
        m: () => document.getElementById("move-input")?.focus(),
        u: () => view?.can.undo && act("undo", {seat: Number(viewer)}),
        h: hint,
        n: () => setDialog({kind: "new"}),
        ArrowLeft: () => jump(-1),
        ArrowRight: () => jump(1),
      };
      const wanted = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!wanted) return;
      event.preventDefault();
      wanted();
    }
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });

  const {Board, lost} = useBoard(view && view.scene.kind);
  const [chosen, choose] = useState({}); // on the board, of which position
  const position = `${id}/${shown}/${viewer}`;
  const selection = chosen.position === position ? chosen.what : null;
  const onSelect = (what) => choose({position, what});
  const warmth = useMemo(() => (view ? heatOf(view, heat) : null), [view, heat]);
  const hinted = advice && advice.key === `${id}/${shown}` && view.analysis ? view.analysis.move : null;
  const goOn = () => setDialog({kind: "new", from: view, ply: shown});

  return html`
    <header class="top">
      <h1>${view ? t(`game.${view.game}`) : "jaxgames"} <small>${t("page.title")}</small></h1>
      <button type="button" class="main" data-testid="new-game" onClick=${() => setDialog({kind: "new"})}>${t("page.new")}</button>
      <button type="button" data-testid="load" onClick=${() => setDialog({kind: "load"})}>${t("page.load")}</button>
      <button type="button" data-testid="save" disabled=${!view} onClick=${save}>${t("page.save")}</button>
      <button type="button" data-testid="copy" disabled=${!view} onClick=${() => copy(recorded())}>${t("page.copy")}</button>
      <button type="button" data-testid="link" disabled=${!view} onClick=${() => copy(share())}>${t("page.link")}</button>
      <${Choice} id="language" label=${t("page.language")} value=${lang} onPick=${setLang} choices=${Object.entries(LANGUAGES)} />
      <${Choice} id="theme" label=${t("page.theme")} value=${theme} onPick=${setTheme}
        choices=${["auto", "light", "dark"].map((name) => [name, t(`theme.${name}`)])} />
    </header>
    <div aria-live="polite" role="status" class="hidden" data-testid="announce">${view ? heard(view, names, hinted, t) : ""}</div>
    ${problem && problem.code !== "illegal" && html`<${Trouble} problem=${problem} t=${t} onClose=${() => setProblem(null)} />`}
    ${notice && html`<p class="banner" role="status" data-testid="notice"><span class="grow">${notice}</span>
      <button type="button" onClick=${() => setNotice("")} aria-label=${t("new.cancel")}>×</button></p>`}
    ${!view && html`<main><p class="panel">${t("page.welcome")}</p></main>`}
    ${view && html`<main>
      <div class="table-side">
        <${Status} view=${view} names=${names} live=${live} mine=${mine} sending=${sending} people=${people} t=${t}
          onLive=${() => setAt(null)} onPlayOn=${goOn}
          onTakeBack=${() => confirm(t("control.take_back_sure", {n: view.plies - shown})) && act("goto", {ply: shown})}
          onAgain=${() => act("run", {on: true})} />
        ${curtain
          ? html`<section class="panel curtain" data-testid="curtain"><h2>${t("curtain.title", {name: names[view.to_move]})}</h2>
              <p>${t("curtain.text")}</p>
              <button type="button" class="main" data-testid="curtain-show" onClick=${() => setViewer(String(view.to_move))}>${t("curtain.show")}</button></section>`
          : html`<section class="panel" aria-label=${t(`game.${view.game}`)}>
              ${lost && html`<p class="error">${lost}</p>`}
              ${Board && html`<${Board} key=${`${id}/${view.scene.kind}`} scene=${view.scene} legal=${view.legal} selection=${selection} onSelect=${onSelect}
                onPlay=${play} heat=${warmth} candidates=${view.analysis ? view.analysis.candidates : null} seen=${view.analysis ? view.analysis.seen : null} viewer=${view.viewer === "all" ? null : view.viewer}
                busy=${!mine} names=${names} hint=${hinted} t=${t} />`}
            </section>
            <section class="panel">
              <${MoveInput} legal=${mine ? view.legal : []} position=${position} mine=${mine} readings=${readings} problem=${problem && problem.code === "illegal" ? problem : null}
                onPlay=${play} onForget=${() => (setReadings(null), setProblem(null))} t=${t} />
              <${Controls} view=${view} viewer=${viewer} people=${people} analysable=${analysable} t=${t}
                onUndo=${() => act("undo", {seat: Number(viewer)})} onHint=${hint}
                onResign=${() => confirm(t("control.resign_sure")) && act("resign", {seat: Number(viewer)})}
                onReview=${() => (view.done || confirm(t("control.review_sure"))) && act("review").then((done) => done && view.hides && setViewer("all"))}
                onRun=${(on) => act("run", {on})} />
            </section>`}
      </div>
      <div class="panels">
        <${Seats} view=${view} names=${names} people=${people} viewer=${viewer} onViewer=${setViewer} t=${t} />
        <${Replay} view=${view} shown=${shown} goal=${goal} live=${live} onGo=${setAt} t=${t} />
        ${!curtain && html`<${Analysis} view=${view} names=${names} shown=${shown} asked=${asked} onAsk=${setAsked} analysable=${analysable}
          onHere=${() => analyse(shown)} onGame=${() => analyse()} onCancel=${() => show(api.act(id, "cancel", {viewer}))}
          heat=${heat} onHeat=${setHeat} onPick=${setAt} onPlay=${mine ? play : null} t=${t} />`}
        <${Moves} view=${view} names=${names} shown=${shown} onGo=${setAt} t=${t} />
        ${!curtain && html`<${Position} view=${view} viewer=${viewer} shown=${shown} onCopy=${copy} t=${t} />`}
        <p class="small dim">${t("page.keys")}</p>
      </div>
    </main>`}
    ${dialog && dialog.kind === "new" && html`<${NewGameDialog} from=${dialog.from} ply=${dialog.ply} playing=${Boolean(view && !view.done && !dialog.from)}
      first=${{game: view ? view.game : "", ...fragment()}} onBegin=${begin} onClose=${() => setDialog(null)} t=${t} />`}
    ${dialog && dialog.kind === "load" && html`<${LoadDialog} onLoad=${(record) => begin({record})} onClose=${() => setDialog(null)} t=${t} />`}
  `;
}

function Choice({id, label, value, choices, onPick}) {
  return html`<label><span class="hidden">${label}</span>
    <select data-testid=${id} value=${value} onChange=${(event) => onPick(event.target.value)}>
      ${choices.map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}
    </select></label>`;
}

function Trouble({problem, t, onClose}) {
  const text = problem.code === "not_found" ? t("page.gone") : problemText(problem, t);
  return html`<p class="banner bad" role="alert" data-testid="problem"><span class="grow">${text}</span>
    <button type="button" onClick=${onClose} aria-label=${t("new.cancel")}>×</button></p>`;
}

/** What is read out after a move: the moves since this person's own last one; and a hint. */
function heard(view, names, hinted, t) {
  const last = view.history.slice(-Math.max(names.length, 1));
  const lines = last.map(({seat, text, news}) => [`${names[seat]}: ${text}`, ...news].join(". "));
  const turn = view.can.move ? t("state.your_turn") : "";
  return [...lines, turn, hinted ? `${t("control.hint")}: ${hinted}` : ""].filter(Boolean).join(". ");
}

render(html`<${App} />`, document.getElementById("app"));
