/**
 * Sequence: the board and the hand. First a card, then a cell; a cell alone where only one
 * natural card can mean it. What is legal comes from the server's list; nothing is judged here.
 */

import {html, useEffect, useMemo, useRef, useState} from "../vendor/htm/standalone.module.js";
import {cardWords, Face, inkOf, Mini, parse, rankText, Suit} from "../cards.js";
import {HeatLegend, shade, valueText} from "../heat.js";

const SIDE = 60;
const MOVE = /^(?:([NWR]) (\d) (\d)|S (\w+)|([PK]))(?: \+(\w+))?$/;
const JACK = {W: "J2", R: "J1"};

/** Legal moves as {action, text, kind, cell, card, pick}. */
export function readMoves(legal, printed) {
  return legal.flatMap(({action, text}) => {
    const found = MOVE.exec(text);
    if (!found) return [];
    const [, kind, row, col, swap, rest, pick = null] = found;
    const cell = kind ? 10 * Number(row) + Number(col) : null;
    const card = swap || (kind ? JACK[kind] || printed[cell] : null);
    return [{action, text, kind: kind || (swap ? "S" : rest), cell, card, pick}];
  });
}

export default function Board(props) {
  const {scene, legal, heat, candidates, hint, busy, names, t, onPlay} = props;
  const [selection, select] = useSelection(props);
  const [lit, setLit] = useState(null);
  const [counting, setCounting] = useState(false);
  const moves = useMemo(() => readMoves(legal || [], scene.printed), [legal, scene]);
  const open = busy ? [] : moves;
  const {card = null, pick = null, cell = null} = selection || {};

  /** Moves that fit what was chosen so far. */
  const fits = (move) =>
    (card === null || move.card === card) && (pick === null || move.pick === null || move.pick === pick);
  const onCell = (at) => open.filter((move) => move.cell === at && fits(move));

  function tapCell(at) {
    const found = onCell(at);
    const cards = [...new Set(found.map((move) => move.card))];
    if (found.length === 1 && (card !== null || found[0].kind === "N" || cell === at)) {
      select(null);
      onPlay(found[0].text);
    } else if (cards.length === 1) {
      select({card: cards[0], pick, cell: at}); // a jack is asked for twice; a pick may be missing
    } else if (cards.length > 1) {
      select({card: null, pick, cell: at});
    }
  }

  function tapCard(name) {
    const here = open.filter((move) => move.card === name && move.cell === cell && fits(move));
    if (cell !== null && card === null && here.length === 1) {
      select(null);
      onPlay(here[0].text);
    } else {
      select(card === name ? null : {card: name, pick, cell: null});
    }
  }

  function play(move) {
    select(null);
    onPlay(move.text);
  }

  const hinted = moves.find((move) => move.text === hint);
  const shown = lit ?? card;
  const pass = open.find((move) => move.kind === "P" || move.kind === "K");
  const state = {scene, open, fits, card, cell, shown, hinted, heat, moves, candidates, counting, names, t};
  return html`<div class="sequence" data-testid="board" onKeyDown=${(event) => event.key === "Escape" && select(null)}>
    <div class="sequence-board">
      <${Cells} ...${state} tapCell=${tapCell} />
      <${HeatLegend} heat=${heat} t=${t} />
    </div>
    <div class="sequence-side">
      <${Hands} ...${state} viewer=${props.viewer} tapCard=${tapCard} setLit=${setLit} play=${play} />
      ${scene.draft && html`<${Draft} ...${state} pick=${pick} choose=${(name) => select({card, cell, pick: name === pick ? null : name})} />`}
      <p class="prompt" role="status" data-testid="prompt">${prompt({busy, card, cell, pick, open, scene, t})}</p>
      ${pass && html`<button type="button" data-testid="pass" onClick=${() => play(pass)}>${t(pass.kind === "K" ? "sequence.keep" : "sequence.pass")}</button>`}
      <${Teams} ...${state} />
      <label class="switch"><input type="checkbox" data-testid="unseen" checked=${counting} onChange=${(e) => setCounting(e.target.checked)} /> ${t("sequence.unseen")}</label>
      <${Discards} ...${state} />
    </div>
  </div>`;
}

/** What was chosen so far, kept by the page if it wants to, else here. */
function useSelection({selection, onSelect, scene}) {
  const [own, setOwn] = useState(null);
  useEffect(() => setOwn(null), [`${scene.plies} ${scene.deck} ${scene.mover}`]);
  return onSelect ? [selection, onSelect] : [own, setOwn];
}

/** The next step in words. */
function prompt({busy, card, cell, pick, open, scene, t}) {
  if (scene.status !== "playing") return scene.headline;
  if (busy || !open.length) return t("board.wait");
  if (scene.draft && pick === null && card !== null) return t("sequence.pick_draft");
  if (card !== null && cell !== null) return t("sequence.confirm", {card: cardWords(card, t)});
  if (card !== null) return t("sequence.choose_cell", {card: cardWords(card, t)});
  if (cell !== null) return t("sequence.choose_card_for", {cell: cellWords(scene, cell, t)});
  return t("sequence.choose_card");
}

// ---- the board ----

const place = (cell) => ({x: (cell % 10) * SIDE, y: Math.floor(cell / 10) * SIDE});

function cellWords(scene, cell, t) {
  const where = {row: Math.floor(cell / 10), col: cell % 10};
  if (!scene.printed[cell]) return t("sequence.corner", where);
  const chip = scene.chips[cell];
  const words = t("sequence.cell", {...where, card: cardWords(scene.printed[cell], t)});
  if (!chip) return words;
  const locked = scene.locked.includes(cell) ? t("sequence.locked") : "";
  return `${words}, ${t("sequence.chip_of", {team: chip})} ${locked}`;
}

function Cells({scene, open, fits, cell, shown, hinted, heat, moves, candidates, counting, t, tapCell}) {
  const root = useRef(null);
  const [at, setAt] = useState(55);
  // jacks reach nearly every cell: theirs are marked once the jack is chosen or pointed at
  const marked = (move) => fits(move) && (move.kind === "N" || shown === move.card || move.cell === cell);
  const targets = new Set(open.filter(marked).map((move) => move.cell));
  const usable = new Set(open.filter(fits).map((move) => move.cell));
  const bright = new Set(
    scene.printed.flatMap((name, i) => (name && name === shown ? [i] : [])),
  );
  for (const move of open) if (move.card === shown && move.cell !== null) bright.add(move.cell);
  const warmth = useMemo(() => warmthOf(heat, moves, shown), [heat, moves, shown]);
  const ranks = new Map();
  (candidates || []).forEach(({text}, i) => {
    const move = moves.find((m) => m.text === text);
    if (move && move.cell !== null && !ranks.has(move.cell)) ranks.set(move.cell, i + 1);
  });

  function onKey(event) {
    const step = {ArrowUp: -10, ArrowDown: 10, ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      tapCell(at);
    } else if (step !== undefined) {
      event.preventDefault();
      event.stopPropagation(); // the page has arrow keys of its own
      const to = at + step;
      const wraps = Math.abs(step) === 1 && Math.floor(to / 10) !== Math.floor(at / 10);
      if (to < 0 || to > 99 || wraps) return;
      setAt(to);
      root.current.querySelector(`[data-cell="${to}"]`).focus();
    }
  }

  return html`<svg class="cells" viewBox="-3 -3 606 606" role="group" aria-label=${t("sequence.board")} ref=${root} onKeyDown=${onKey}>
    ${scene.printed.map((name, i) => html`<${Cell}
      key=${i} scene=${scene} cell=${i} name=${name} t=${t}
      tab=${i === at ? 0 : -1} onFocus=${() => setAt(i)} onClick=${() => tapCell(i)}
      usable=${usable.has(i)} target=${targets.has(i)} bright=${bright.has(i)} chosen=${cell === i}
      hinted=${hinted && hinted.cell === i} heat=${heat} warmth=${warmth.get(i)} />`)}
    ${scene.sequences.map(({team, cells}) => html`<${Run} team=${team} cells=${cells} />`)}
    ${scene.chips.map((chip, i) => chip > 0 && html`<${Chip} ...${centre(i)} team=${chip} size=${18} locked=${scene.locked.includes(i)} />`)}
    ${scene.last && scene.last.cell !== null && html`<rect class=${`last ${scene.last.kind === "R" ? "gone" : ""}`}
      x=${place(scene.last.cell).x + 3} y=${place(scene.last.cell).y + 3} width="54" height="54" rx="6" />`}
    ${counting && scene.printed.map((name, i) => name && html`<text class="small" x=${place(i).x + 4} y=${place(i).y + 55}>×${scene.unseen[name] || 0}</text>`)}
    ${[...ranks].map(([i, rank]) => html`<g class="candidate" transform=${`translate(${place(i).x + 48} ${place(i).y + 12})`}><circle r="9" /><text y="4.5">${rank}</text></g>`)}
  </svg>`;
}

/** Heat by cell: shares of its moves together, the best Q of them; of one card if one is shown. */
function warmthOf(heat, moves, card) {
  const found = new Map();
  if (!heat) return found;
  const ofCard = moves.some((move) => move.card === card && move.cell !== null);
  for (const move of moves) {
    const value = heat.values[move.action];
    if (move.cell === null || value === undefined || value === null) continue;
    if (ofCard && move.card !== card) continue;
    const before = found.get(move.cell);
    const joined = before === undefined ? value : heat.kind === "q" ? Math.max(before, value) : before + value;
    found.set(move.cell, joined);
  }
  return found;
}

function Cell({scene, cell, name, t, tab, onFocus, onClick, usable, target, bright, chosen, hinted, heat, warmth}) {
  const {x, y} = place(cell);
  const taken = scene.chips[cell] > 0;
  const warm = warmth !== undefined && (heat.kind === "q" || warmth > 0.004) && shade(heat, warmth);
  const classes = ["cell", target && "target", bright && "bright", chosen && "chosen", hinted && "hinted"];
  return html`<g class=${classes.filter(Boolean).join(" ")} data-cell=${cell} role="button" tabindex=${tab}
      aria-label=${cellWords(scene, cell, t)} aria-disabled=${!usable}
      transform=${`translate(${x} ${y})`} onFocus=${onFocus} onClick=${onClick}>
    <rect class="paper" x="2" y="2" width="56" height="56" rx="6" />
    ${warm && html`<rect class=${warm.name} x="3" y="3" width="54" height="54" rx="5" opacity=${warm.opacity} />`}
    ${name ? html`<${Print} name=${name} taken=${taken} />` : html`<path class="corner" d="M30 10L36 24L50 30L36 36L30 50L24 36L10 30L24 24Z" />`}
    ${bright && html`<rect class="glow" x="4" y="4" width="52" height="52" rx="5" />`}
    ${target && !taken && html`<circle class="dot" cx="30" cy="41" r="5" />`}
    ${target && taken && html`<path class="cross" d="M46 6l8 8m0-8l-8 8" />`}
    ${warm && html`<text class="small" x="55" y="54" text-anchor="end">${valueText(heat, warmth)}</text>`}
    <rect class="ring" x="2" y="2" width="56" height="56" rx="6" />
  </g>`;
}

/** The card of a cell: rank and suit above, a large suit while no chip lies on it. */
function Print({name, taken}) {
  const {rank, suit} = parse(name);
  const ink = inkOf(suit);
  const wide = rank === "T";
  return html`<text class=${`${ink} rank`} x=${wide ? 15 : 12} y="21" font-size=${wide ? 17 : 19}>${rankText(rank)}</text>
    <${Suit} suit=${suit} x=${wide ? 28 : 21} y=${8} size=${14} ink=${ink} />
    ${!taken && html`<${Suit} suit=${suit} x=${19} y=${28} size=${23} ink=${ink} />`}`;
}

/** A chip lies low and right, so that the card stays readable. */
const centre = (cell) => ({x: place(cell).x + 34, y: place(cell).y + 36});

/** Teams differ by colour, shape (disc, square, hexagon) and number; locked chips wear a lock. */
export function Chip({x, y, team, size, locked}) {
  const r = size;
  const shape = [
    html`<circle r=${r} />`,
    html`<rect x=${-0.88 * r} y=${-0.88 * r} width=${1.76 * r} height=${1.76 * r} rx=${0.25 * r} />`,
    html`<path d=${`M${r} 0L${r / 2} ${0.9 * r}H${-r / 2}L${-r} 0L${-r / 2} ${-0.9 * r}H${r / 2}Z`} />`,
  ][team - 1];
  return html`<g class=${`chip team${team} ${locked ? "safe" : ""}`} transform=${`translate(${x} ${y})`}>
    ${shape}<text y=${0.38 * r} font-size=${r}>${team}</text>
    ${locked && html`<g class="lock" transform=${`translate(${0.62 * r} ${0.42 * r})`}><path class="bow" d="M-3.4 0V-3a3.4 3.4 0 0 1 6.8 0V0" /><rect x="-5" y="-1" width="10" height="8" rx="1.5" /></g>`}
  </g>`;
}

function Run({team, cells}) {
  const [a, b] = [centre(cells[0]), centre(cells[cells.length - 1])];
  return html`<line class=${`run team${team + 1}`} x1=${a.x} y1=${a.y} x2=${b.x} y2=${b.y} />`;
}

// ---- beside it ----

function Hands({scene, open, card, shown, hinted, names, viewer, t, tapCard, setLit, play}) {
  const seats = scene.seats.filter((seat) => seat.cards && (viewer === null || viewer === undefined || seat.seat === viewer));
  return seats.map(({seat, team, cards}) => html`<section class="hand" key=${seat} aria-label=${t("board.hand_of", {name: nameOf(names, seat, t)})}>
    ${seats.length > 1 && html`<h3><${Badge} team=${team + 1} /> ${nameOf(names, seat, t)}</h3>`}
    <ul>${cards.map((name, i) => html`<${HandCard} key=${i} name=${name} mine=${seat === scene.mover}
      scene=${scene} open=${open} card=${card} shown=${shown} hinted=${hinted} t=${t}
      tapCard=${tapCard} setLit=${setLit} play=${play} />`)}</ul>
  </section>`);
}

function HandCard({name, mine, scene, open, card, hinted, t, tapCard, setLit, play}) {
  const moves = mine ? open.filter((move) => move.card === name && move.kind !== "S") : [];
  const swaps = mine ? open.filter((move) => move.card === name && move.kind === "S") : [];
  const dead = scene.dead.includes(name);
  const jack = scene.jacks[name];
  const words = [cardWords(name, t)];
  if (dead) words.push(t("sequence.dead"));
  else if (mine) words.push(t("sequence.cells_open", {n: new Set(moves.map((move) => move.cell)).size}));
  const light = () => setLit(name);
  const dark = () => setLit(null);
  return html`<li>
    <button type="button" class=${`card ${dead ? "dead" : ""} ${hinted && hinted.card === name ? "hinted" : ""}`} data-card=${name}
        aria-pressed=${card === name} aria-label=${words.join(", ")} title=${words.join(", ")}
        aria-disabled=${!moves.length}
        onMouseEnter=${light} onMouseLeave=${dark} onFocus=${light} onBlur=${dark}
        onClick=${() => tapCard(name)}>
      <${Face} name=${name} jack=${jack} t=${t} />
      ${jack && html`<span class="power-word">${t(`sequence.${jack.power}`)}</span>`}
      ${dead && html`<span class="power-word">${t("sequence.dead")}</span>`}
    </button>
    ${swaps.map((move) => html`<button type="button" class="swap" data-testid="swap" onClick=${() => play(move)}>
      ${t("sequence.swap")}${move.pick ? html` <${Mini} name=${move.pick} t=${t} />` : ""}</button>`)}
  </li>`;
}

function Draft({scene, open, card, pick, t, choose}) {
  const useful = new Set(open.filter((move) => card === null || move.card === card).map((move) => move.pick));
  return html`<section class="hand" aria-label=${t("sequence.draft")}><h3>${t("sequence.draft")}</h3>
    <ul>${scene.draft.map((name, i) => html`<li key=${i}><button type="button" class="card" data-pick=${name}
      aria-pressed=${pick === name} aria-label=${cardWords(name, t)} aria-disabled=${!useful.has(name)} onClick=${() => choose(name)}>
      <${Face} name=${name} jack=${scene.jacks[name]} t=${t} /></button></li>`)}</ul></section>`;
}

export const nameOf = (names, seat, t) => (names && names[seat]) || t("board.seat", {seat});

const Badge = ({team}) => html`<svg class="badge" viewBox="-20 -20 40 40" aria-hidden="true"><${Chip} x=${0} y=${0} team=${team} size=${17} /></svg>`;

/** Who has how many sequences and cards. */
function Teams({scene, names, t}) {
  return html`<table class="teams"><caption class="hidden">${t("sequence.teams")}</caption>
    <tbody>${scene.seats.map(({seat, team, count}) => html`<tr key=${seat} class=${seat === scene.mover ? "mover" : ""}>
      <td><${Badge} team=${team + 1} /></td>
      <th scope="row">${nameOf(names, seat, t)}${seat === scene.mover ? html` <span class="to-move">◀ ${t("board.to_move")}</span>` : ""}</th>
      <td>${t("board.cards_left", {n: count})}</td>
      <td>${seat < scene.teams ? t("sequence.score", {n: scene.scores[team], of: scene.to_win}) : ""}</td>
    </tr>`)}</tbody></table>
    <p class="facts">${t("sequence.deck", {n: scene.deck})}${scene.last ? html` · ${t("sequence.last", {text: scene.last.text})}` : ""}</p>
    ${Object.keys(scene.known).length > 0 && html`<p class="facts">${t("sequence.known")} ${list(scene.known, t)}</p>`}`;
}

/** The discards: public, always visible. */
function Discards({scene, t}) {
  const total = Object.values(scene.discards).reduce((a, b) => a + b, 0);
  return html`<section class="discards" aria-label=${t("sequence.discards", {n: total})}>
    <h3>${t("sequence.discards", {n: total})}</h3><p>${list(scene.discards, t)}</p></section>`;
}

function list(counts, t) {
  return Object.entries(counts).map(([name, n]) => html`<span class="counted" key=${name}>
    ${name[0] === "J" ? html`<b title=${cardWords(name, t)}>${name === "J2" ? "J+" : "J−"}</b>` : html`<${Mini} name=${name} t=${t} />`}${n > 1 ? `×${n}` : ""}</span> `);
}
