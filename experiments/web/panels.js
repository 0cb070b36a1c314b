/** Panels beside the board: seats, state, moves, replay, what a person can do. */

import {html, useEffect, useMemo, useRef, useState} from "./vendor/htm/standalone.module.js";
import * as api from "./api.js";
import {problemText} from "./problem_text.js";

/** Moves that the list under the input shows at once. */
const LISTED = 30;
/** Less expected than the best by more than this is a mistake. */
const MISTAKE = 0.1;

export const signed = (value, digits = 2) =>
  value === null || value === undefined ? "–" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);

/** A name that may be broken where its options begin: "muzero:sims=16". */
export const breakable = (name) => name.replaceAll(":", ":\u200b");

/** Names by seat: "You" where one person plays, machines by name, told apart by seat. */
export function seatNames(view, people, t) {
  const plain = view.names.map((name, seat) => {
    if (view.seats[seat].kind !== "human" || view.review) return name === "human" ? t("seat.player") : name;
    return people.length === 1 ? t("seat.you") : t("seat.player");
  });
  return plain.map((name, seat) => (plain.filter((n) => n === name).length > 1 ? t("seat.at", {name, seat}) : name));
}

export function Seats({view, names, people, viewer, onViewer, t}) {
  const seen = view.open ? names.map((_, seat) => seat) : people;
  const worth = view.analysis ? view.analysis.value : null;
  return html`<section class="panel" aria-label=${t("seat.title")}>
    <ul class="seats">${names.map((name, seat) => html`<li key=${seat} data-testid=${`seat-${seat}-panel`}
        class=${`team-${(view.teams[seat] % 4) + 1} ${view.to_move === seat && !view.done ? "turn" : ""}`}>
      <span class="words"><strong>${breakable(name)}</strong> <span class="small dim">${t("new.seat", {seat})} · ${t(`kind.${view.seats[seat].kind}`)}</span></span>
      ${worth && html`<span class="worth" title=${t("analysis.value")}>${signed(worth[seat])}</span>`}
    </li>`)}</ul>
    ${(seen.length > 1 || view.open) && view.hides && html`<label class="row small">${t("seat.view")}
      <select data-testid="viewer" value=${viewer} onChange=${(event) => onViewer(event.target.value)}>
        ${seen.map((seat) => html`<option key=${seat} value=${String(seat)}>${names[seat]}</option>`)}
        ${view.open && html`<option value="all">${t("seat.all")}</option>`}
      </select></label>`}
    ${view.opened !== null && html`<p class="small" data-testid="opened">${t(view.opened ? "seat.opened" : "seat.opened_deal", {n: view.opened})}</p>`}
  </section>`;
}

/** Whose turn it is, how it ended, or where in the past we are. */
export function Status({view, names, live, mine, sending, people, t, onLive, onPlayOn, onTakeBack, onAgain}) {
  const buttons = [];
  let state = "waiting";
  let text;
  if (view.error) {
    state = "failed";
    text = t("state.failed", {name: names[view.error.seat], detail: problemText({code: view.error.code, message: view.error.detail}, t)});
    buttons.push(html`<button type="button" data-testid="again" onClick=${onAgain}>${t("state.again")}</button>`);
  } else if (!live && !view.review) {
    state = "past";
    text = t("state.past", {ply: view.ply, plies: view.plies});
    buttons.push(html`<button type="button" data-testid="live" onClick=${onLive}>${t("control.live")}</button>`);
    if (view.ply < view.plies && people.length && view.can.back !== null && view.ply >= view.can.back) {
      buttons.push(html`<button type="button" data-testid="take-back" onClick=${onTakeBack}>${t("control.take_back")}</button>`);
    }
  } else if (view.result) {
    state = "over";
    text = ending(view, names, t);
  } else if (view.review) {
    state = "review";
    text = `${t("state.review")} ${t("state.past", {ply: view.ply, plies: view.plies})}`;
  } else if (view.thinking !== null) {
    state = "thinking";
    text = html`<span class="busy">${t("state.thinking", {name: names[view.thinking]})}${view.waits ? ` (${view.waits})` : ""}</span>`;
  } else if (mine || sending) {
    state = sending ? "sending" : "yours";
    text = people.length > 1 ? t("state.turn", {name: names[view.to_move]}) : t("state.your_turn");
  } else if (!view.running) {
    text = t("state.paused");
  } else {
    text = t("state.turn", {name: names[view.to_move]});
  }
  if (view.open && (view.review || view.result || !people.length)) {
    buttons.push(html`<button type="button" data-testid="play-on" onClick=${onPlayOn}>${t("control.play_on")}</button>`);
  }
  return html`<section class=${`banner ${view.error ? "bad" : ""}`} data-testid="status" data-state=${state} data-plies=${view.plies}><p role="status">${text}</p>${buttons}</section>`;
}

function ending(view, names, t) {
  const {rewards, winners, resigned, truncated} = view.result;
  const said = [];
  if (resigned !== null) said.push(t("state.resigned", {name: names[resigned]}));
  if (truncated) said.push(t("state.cut"));
  if (winners.length === names.length) said.push(t("state.draw"));
  else if (winners.length) said.push(t("state.won", {names: winners.map((seat) => names[seat]).join(", ")}));
  else if (resigned === null) said.push(t("state.over"));
  if (resigned === null) said.push(t("state.rewards", {rewards: names.map((name, seat) => `${name} ${signed(rewards[seat])}`).join(", ")}));
  return said.join(" ");
}

/** The box that takes any move in the game's notation, with what is legal in `position` below it. */
export function MoveInput({legal, position, mine, readings, problem, onPlay, onForget, t}) {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [mark, setMark] = useState({at: -1}); // which one of the list, for which text and position
  const found = useMemo(() => matching(legal, text), [legal, text]);
  const shown = found.slice(0, LISTED);
  const chosen = mark.text === text && mark.position === position ? mark.at : -1;

  async function send(move) {
    if (!move) return;
    setText(""); // so that the next move can be typed while this one is on its way
    setOpen(false);
    if (!(await onPlay(move))) setText((typed) => typed || move);
  }

  function onKey(event) {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) {
      event.preventDefault();
      setOpen(true);
      setMark({at: Math.min(Math.max(chosen + step, -1), shown.length - 1), text, position});
    } else if (event.key === "Escape") {
      setOpen(false);
      onForget();
    } else if (event.key === "Enter") {
      event.preventDefault();
      send(open && chosen >= 0 ? shown[chosen].text : text.trim());
    }
  }

  return html`<form class="row" onSubmit=${(event) => (event.preventDefault(), send(text.trim()))}>
      <label for="move-input">${t("move.label")}</label>
      <div class="combo">
        <input id="move-input" data-testid="move-input" autocomplete="off" spellcheck="false" placeholder=${t("move.placeholder")}
          role="combobox" aria-expanded=${String(open)} aria-controls="move-list" aria-autocomplete="list"
          aria-activedescendant=${open && chosen >= 0 ? `move-${chosen}` : null}
          value=${text} readonly=${!mine} aria-disabled=${String(!mine)} onInput=${(event) => (setText(event.target.value), setOpen(true))}
          onFocus=${() => setOpen(true)} onBlur=${() => setOpen(false)} onKeyDown=${onKey} />
        ${open && mine && html`<ul id="move-list" role="listbox" data-testid="move-list" aria-label=${t("move.legal", {n: legal.length})}
            onMouseDown=${(event) => event.preventDefault()}>
          ${shown.map((move, i) => html`<li key=${move.action} id=${`move-${i}`} role="option" aria-selected=${String(i === chosen)}
            onClick=${() => send(move.text)}>${move.text}${move.note ? html` <span class="small">${move.note}</span>` : ""}</li>`)}
          ${found.length > shown.length && html`<li class="more">${t("move.more", {n: found.length - shown.length})}</li>`}
          ${!found.length && html`<li class="more">${t("move.none")}</li>`}
        </ul>`}
      </div>
      <button type="submit" class="main" data-testid="move-play" disabled=${!mine || !text.trim()}>${t("move.play")}</button>
      <span class="small dim" data-testid="legal-count">${mine ? t("move.legal", {n: legal.length}) : ""}</span>
    </form>
    ${problem && html`<p class="error" role="alert" data-testid="refused">${t("move.refused", {detail: problem.message})}</p>`}
    ${readings && html`<fieldset data-testid="readings"><legend>${t("move.which")}</legend><div class="row">
      ${readings.map((move) => html`<button type="button" key=${move} onClick=${() => send(move)}>${move}</button>`)}
      <button type="button" onClick=${onForget}>${t("move.cancel")}</button></div></fieldset>`}`;
}

/** Legal moves that read like a text: those that begin with it first. */
function matching(legal, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return legal;
  const begin = [];
  const inside = [];
  for (const move of legal) {
    const name = move.text.toLowerCase();
    if (name.startsWith(wanted)) begin.push(move);
    else if (name.includes(wanted) || (move.note || "").toLowerCase().includes(wanted)) inside.push(move);
  }
  return [...begin, ...inside];
}

export function Controls({view, viewer, people, analysable, t, onUndo, onHint, onResign, onReview, onRun}) {
  const over = view.done || view.review || view.result;
  return html`<div class="row">
    <button type="button" data-testid="undo" disabled=${!view.can.undo} onClick=${onUndo}>${t("control.undo")}</button>
    <button type="button" data-testid="hint" disabled=${!analysable} onClick=${onHint}>${t("control.hint")}</button>
    <button type="button" data-testid="resign" disabled=${!view.can.resign} onClick=${onResign}>${t("control.resign")}</button>
    <button type="button" data-testid="review" disabled=${view.review} onClick=${onReview}>${t("control.review")}</button>
    ${!people.length && !over && html`<button type="button" data-testid="run" onClick=${() => onRun(!view.running)}>
      ${t(view.running ? "control.pause" : "control.go_on")}</button>`}
  </div>`;
}

export function Moves({view, names, shown, onGo, t}) {
  const list = useRef(null);
  const losses = useMemo(() => Object.fromEntries(view.values.map(({ply, loss}) => [ply, loss])), [view.values]);
  useEffect(() => {
    const here = list.current && list.current.querySelector('[aria-current="true"]');
    if (here) list.current.scrollTop = here.offsetTop - list.current.offsetTop - list.current.clientHeight / 2;
  }, [shown, view.plies]);
  return html`<section class="panel" data-testid="moves"><details open><summary>${t("moves.title")} (${view.plies})</summary>
    <ol class="moves" ref=${list}>
      <li><button type="button" aria-current=${String(shown === 0)} onClick=${() => onGo(0)}><span class="ply">0</span> ${t("moves.start")}</button></li>
      ${view.history.map(({ply, seat, text, news}) => html`<li key=${ply}><button type="button" aria-current=${String(shown === ply + 1)}
          onClick=${() => onGo(ply + 1)}>
        <span class="ply">${ply + 1}</span> <span>${names[seat]}: ${text}${news.length ? html` <span class="small dim">${news.join("; ")}</span>` : ""}</span>
        ${losses[ply] > MISTAKE && html`<span class="worse small">${t("moves.loss", {n: losses[ply].toFixed(2)})}</span>`}
      </button></li>`)}
    </ol></details></section>`;
}

/** `shown` is the ply on the screen, `goal` the one asked for: clicks may be faster than answers. */
export function Replay({view, shown, goal, live, onGo, t}) {
  const [speed, setSpeed] = useState("2");
  const [playing, setPlaying] = useState(false);
  const last = view.plies;
  const go = (ply) => {
    setPlaying(false);
    onGo(ply);
  };
  useEffect(() => {
    if (!playing) return undefined;
    if (shown >= last) {
      setPlaying(false);
      return undefined;
    }
    const timer = setTimeout(() => onGo(shown + 1), 1000 / Number(speed));
    return () => clearTimeout(timer);
  }, [playing, shown, last, speed]);
  useEffect(() => setPlaying(false), [view.id]);

  const mistake = view.values.find(({ply, loss}) => loss > MISTAKE && ply > (live ? -1 : shown));
  function toggle() {
    if (!playing && shown >= last) onGo(0);
    setPlaying(!playing);
  }
  const steps = [
    ["first", "|◀", 0], ["back", "◀", Math.max(goal - 1, 0)],
    ["forward", "▶", Math.min(goal + 1, last)], ["last", "▶|", view.review ? last : null],
  ]; // prettier-ignore
  return html`<section class="panel replay" aria-label=${t("replay.title")}>
    <label class="small">${t("replay.slider")}: <strong>${shown}</strong> / ${last}
      <input type="range" data-testid="replay-slider" min="0" max=${last} value=${shown} disabled=${!last}
        aria-valuetext=${shown ? `${shown}: ${view.history[shown - 1].text}` : t("moves.start")}
        onInput=${(event) => go(Number(event.target.value))} /></label>
    <div class="row">
      ${steps.slice(0, 2).map(([name, sign, to]) => html`<${Step} key=${name} name=${name} sign=${sign} disabled=${!last} onClick=${() => go(to)} t=${t} />`)}
      <button type="button" data-testid="replay-play" aria-pressed=${String(playing)} disabled=${!last} onClick=${toggle}>${t(playing ? "replay.stop" : "replay.play")}</button>
      ${steps.slice(2).map(([name, sign, to]) => html`<${Step} key=${name} name=${name} sign=${sign} disabled=${!last} onClick=${() => go(to)} t=${t} />`)}
      <label class="small">${t("replay.speed")} <select data-testid="replay-speed" value=${speed} onChange=${(event) => setSpeed(event.target.value)}>
        ${["0.5", "1", "2", "4", "8"].map((n) => html`<option key=${n} value=${n}>${n}</option>`)}</select></label>
      ${mistake && html`<button type="button" data-testid="mistake" onClick=${() => go(mistake.ply)}>${t("replay.mistake")}</button>`}
    </div></section>`;
}

function Step({name, sign, disabled, onClick, t}) {
  return html`<button type="button" data-testid=${`replay-${name}`} aria-label=${t(`replay.${name}`)} title=${t(`replay.${name}`)}
    disabled=${disabled} onClick=${onClick}>${sign}</button>`;
}

/** The position as text, asked for when it is opened. */
export function Position({view, viewer, shown, onCopy, t}) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  useEffect(() => {
    if (!open) return undefined;
    let wanted = true;
    api.text(view.id, viewer, shown).then(
      (found) => wanted && setText(found),
      (error) => wanted && setText(problemText(error, t)),
    );
    return () => {
      wanted = false;
    };
  }, [open, view.id, viewer, shown, view.plies]);
  return html`<section class="panel" data-testid="position"><details open=${open} onToggle=${(event) => setOpen(event.target.open)}>
    <summary>${t("position.title")}</summary>
    ${open && html`<pre class="position" tabindex="0">${text}</pre>
      <div class="row"><button type="button" onClick=${() => onCopy(Promise.resolve(text))}>${t("position.copy")}</button>
        ${view.seed !== null && html`<span class="small dim" data-testid="deal-seed">${t("position.seed", {n: view.seed})}</span>`}</div>`}
  </details></section>`;
}
