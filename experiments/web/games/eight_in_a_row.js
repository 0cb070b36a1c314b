/**
 * Eight-in-a-Row: canvas layers for grid, heat and stones, of which only the part in view is
 * drawn, and one SVG for labels, rings and the ghost. A tap shows the stone, a second one puts it.
 */

import {html, useEffect, useMemo, useRef, useState} from "../vendor/htm/standalone.module.js";
import {HeatLegend} from "../heat.js";
import {useWidth} from "../width.js";
import {heatImage, Layers, Minimap, outline, useColours} from "./eight_canvas.js";

const EDGE = 22; // pixels for the labels on the left and at the top
const FIT = 14; // pixels of a cell below which a board does not start as a whole
const NEAREST = 64; // pixels of a cell at most
const WRITTEN = 17; // pixels of a cell in which a number can be read
const DIGIT = 12; // pixels that a number takes
/** Directions around a place, up and to the right first. */
const AROUND = Array.from({length: 12}, (_, i) => (Math.PI / 180) * (-45 + 30 * (i % 2 ? -(i + 1) / 2 : i / 2))).map((angle) => [Math.cos(angle), Math.sin(angle)]);

/** Letters of a column: a .. z, aa, ab, ... */
export function columnText(col) {
  let text = "";
  for (let n = col + 1; n > 0; n = Math.floor((n - 1) / 26)) text = String.fromCharCode(97 + ((n - 1) % 26)) + text;
  return text;
}

const cellText = (row, col) => `${columnText(col)}${row + 1}`;

/** [row, col] of a cell's name. */
export function placeOf(text) {
  const [, letters, row] = /^([a-z]+)(\d+)$/.exec(text) || [];
  if (!letters) return null;
  return [Number(row) - 1, [...letters].reduce((n, c) => 26 * n + c.charCodeAt(0) - 96, 0) - 1];
}

export default function Board({scene, legal, onPlay, heat, candidates, seen, hint, busy, viewer, t, ...props}) {
  const [selection, onSelect] = useChoice(props);
  const box = useRef(null);
  const colours = useColours();
  const width = useWidth(box);
  const {rows, cols} = scene;
  const space = Math.max(width - EDGE, 1);
  const smallest = space / Math.max(cols, 1);
  const height = EDGE + Math.min(Math.ceil(smallest * rows), Math.max(space, 320));
  const least = Math.min(smallest, (height - EDGE) / rows);

  // Where we look: pixels of a cell, and the cell in the middle (with fractions).
  const [wanted, look] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [hover, setHover] = useState(null);
  const [threats, setThreats] = useState(false);
  const [veiled, setVeiled] = useState(true);
  const newest = scene.newest === null ? null : scene.seats[scene.newest].last;
  const centre = [(rows - 1) / 2, (cols - 1) / 2];
  const first = {size: Math.max(least, Math.min(FIT, NEAREST)), middle: newest || centre};
  const at = useMemo(() => place(wanted || first, {rows, cols, least, width, height}), [wanted, rows, cols, least, width, height]);
  const {x, y, size, view} = at;
  const whole = size <= least * 1.01;
  const mid = ([row, col]) => [x(col + 0.5), y(row + 0.5)];
  const inView = ([row, col]) => row >= view.top && row < view.bottom && col >= view.left && col < view.right;
  const showWhole = () => look({size: least, middle: centre});

  const cells = useSame(scene.cells);
  const board = useMemo(() => ({rows, cols, cells, players: scene.seats.length}), [rows, cols, cells, scene.seats.length]);
  const open = useMemo(() => new Map((legal || []).map(({action, text}) => [text, action])), [legal]);
  const warm = useMemo(() => warmCells(open, heat, rows, cols), [open, heat, rows, cols]);
  const looked = useMemo(() => seen && veiled && new Set(seen.map(placeOf).filter(Boolean).map(([row, col]) => row * cols + col)), [seen, veiled, cols]);
  const image = useMemo(() => heatImage(board, warm, heat, looked, colours), [board, warm, heat, looked, colours]);
  const marks = useMemo(() => (candidates || []).slice(0, 5).map(({text}) => placeOf(text)).filter(Boolean), [candidates]);
  const ghost = selection && open.has(selection.text) ? placeOf(selection.text) : null;

  // A move made out of sight is looked at.
  useEffect(() => {
    if (width && newest && !inView(newest)) look({size, middle: newest});
  }, [newest && newest.join()]);

  function choose(cell) {
    const text = cellText(...cell);
    setCursor(cell);
    if (busy || !open.has(text)) onSelect(null);
    else if (selection && selection.text === text) {
      onSelect(null);
      onPlay(text);
    } else onSelect({text});
  }

  // Pixels from the middle of the view to a cell (with fractions) and back.
  const spot = ([right, down]) => [at.middle[0] + down / size, at.middle[1] + right / size];
  /** Looks so that a cell lies so many pixels from the middle. */
  function hold(cell, [right, down], wish) {
    const used = Math.min(Math.max(wish, least), NEAREST);
    look({size: used, middle: [cell[0] - down / used, cell[1] - right / used]});
  }

  function zoom(factor, from = null) {
    const near = [cursor, newest].find((cell) => cell && inView(cell));
    const away = from || (near ? [(near[1] - at.middle[1]) * size, (near[0] - at.middle[0]) * size] : [0, 0]);
    hold(spot(away), away, size * factor);
  }

  function onKey(event) {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (step) {
      const from = cursor || newest || centre.map(Math.floor);
      const big = event.shiftKey ? 5 : 1;
      const to = cursor ? [clamp(from[0] + big * step[0], rows), clamp(from[1] + big * step[1], cols)] : from;
      setCursor(to);
      if (!inView(to)) look({size, middle: to});
    } else if ((event.key === "Enter" || event.key === " ") && cursor) choose(cursor);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "Home") showWhole();
    else if (event.key === "Escape") onSelect(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Pixels from the middle of the view to a pointer. */
  function away({clientX, clientY}) {
    const edge = box.current.getBoundingClientRect();
    return [clientX - edge.left - box.current.clientLeft - EDGE - space / 2, clientY - edge.top - box.current.clientTop - EDGE - (height - EDGE) / 2];
  }

  /** The cell under a pointer, null off the board. */
  function under(event) {
    const [right, down] = away(event);
    const [row, col] = spot([right, down]).map(Math.round);
    const outside = right < -space / 2 || down < -(height - EDGE) / 2;
    return outside || row < 0 || col < 0 || row >= rows || col >= cols ? null : [row, col];
  }

  const point = (cell) => setHover((old) => (String(old) === String(cell) ? old : cell));
  const pointers = usePointers({size, whole, away, spot, hold, under, choose, point});
  useEffect(() => {
    const wheel = (event) => {
      if (!event.ctrlKey && whole) return; // the page scrolls
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, away(event));
    };
    const board = box.current;
    board.addEventListener("wheel", wheel, {passive: false});
    return () => board.removeEventListener("wheel", wheel);
  });

  const told = hover || cursor;
  const best = hint ? placeOf(hint) : null;
  const headline = scene.mover === null ? scene.headline : t("eight.to_move", {seat: scene.mover + 1});
  const overlay = useMemo(() => html`<svg aria-hidden="true">
      ${scene.lines.map((line) => html`<path class="won" stroke-width=${size / 5} d=${`M${mid(line[0]).join(" ")}L${mid(line[line.length - 1]).join(" ")}`} />`)}
      ${threats && scene.threats.filter(({place: cell}) => inView(cell)).map(({seat, place: cell, wins}) => html`<${Mark} at=${mid(cell)} seat=${seat} r=${size * 0.3} dashed=${!wins} />`)}
      ${ranked(marks.map((cell) => inView(cell) && mid(cell)), size, width, height).map((mark) => html`<${Candidate} ...${mark} size=${size} />`)}
      ${best && html`<rect class="best" x=${x(best[1]) + 2} y=${y(best[0]) + 2} width=${Math.max(size - 4, 3)} height=${Math.max(size - 4, 3)} rx="4" />`}
      ${scene.seats.map(({seat, last}) => last && inView(last) && html`<circle key=${seat} class="ring" cx=${mid(last)[0]} cy=${mid(last)[1]}
        r=${Math.max(size * (seat === scene.newest ? 0.46 : 0.42), seat === scene.newest ? 6 : 4)} stroke-width=${seat === scene.newest ? 3 : 1.5} />`)}
      ${ghost && scene.mover !== null && html`<${Ghost} at=${mid(ghost)} seat=${scene.mover} r=${size * 0.36} />`}
      ${cursor && inView(cursor) && html`<rect class="cursor" x=${x(cursor[1]) + 1} y=${y(cursor[0]) + 1} width=${Math.max(size - 2, 3)} height=${Math.max(size - 2, 3)} />`}
      <rect class="edge" width="100%" height=${EDGE} /><rect class="edge" width=${EDGE} height="100%" />
      ${labels(view.left, view.right, size).map((col) => html`<text class="label" x=${Math.min(x(col + 0.5), width - 9)} y=${EDGE / 2}>${columnText(col)}</text>`)}
      ${labels(view.top, view.bottom, size).map((row) => html`<text class="label" x=${EDGE / 2} y=${Math.min(y(row + 0.5), height - 8)}>${row + 1}</text>`)}
    </svg>`, [at, scene, threats, marks, hint, cursor, ghost && ghost.join()]);
  return html`<div class="eight" data-testid="board">
    <div class="eight-board" ref=${box} style=${{height: `${height}px`, maxWidth: `min(${EDGE + cols * NEAREST}px, max(340px, 100vh - 220px))`, touchAction: whole ? "pan-y" : "none"}} tabindex="0" role="application" data-keys
        aria-label=${t("eight.board")} aria-describedby="eight-here" onKeyDown=${onKey} ...${pointers}>
      ${width > 0 && html`<${Layers} ...${{board, at, image, warm, heat, colours}} />`}
      ${overlay}
    </div>
    <p class="eight-facts" id="eight-here" role="status" data-testid="prompt">${selection ? html`<strong>${t("eight.confirm", {cell: selection.text})}</strong>` : told ? cellWords(scene, told, t) : headline}</p>
    <div class="row">
      <button type="button" data-testid="zoom-in" aria-label=${t("eight.zoom_in")} title=${t("eight.zoom_in")} onClick=${() => zoom(1.4)}>+</button>
      <button type="button" data-testid="zoom-out" aria-label=${t("eight.zoom_out")} title=${t("eight.zoom_out")} disabled=${whole} onClick=${() => zoom(1 / 1.4)}>−</button>
      <button type="button" data-testid="whole" disabled=${whole} onClick=${showWhole}>${t("eight.whole")}</button>
      <label class="small"><input type="checkbox" data-testid="threats" checked=${threats} onChange=${(event) => setThreats(event.target.checked)} /> ${t("eight.threats")}</label>
      ${seen && html`<label class="small"><input type="checkbox" data-testid="window" checked=${veiled} onChange=${(event) => setVeiled(event.target.checked)} /> ${t("eight.window", {n: seen.length})}</label>`}
      <span class="small dim" title=${scene.about}>${t("eight.about", {rows, cols, n: scene.length, players: scene.seats.length})}${scene.cap ? ` · ${t("eight.cap", {n: scene.cap})}` : ""}${scene.progress ? ` · ${scene.progress}` : ""}</span>
    </div>
    ${(!whole || rows * cols > 900) && html`<${Minimap} ...${{board, view, image, colours, marks, t}} onLook=${(middle) => look({size, middle})} />`}
    <ul class="seats small">${scene.seats.map((seat) => html`<li key=${seat.seat} class=${`team-${seat.seat + 1} ${seat.seat === scene.mover ? "turn" : ""}`}>
      <svg viewBox="-10 -10 20 20" width="20" height="20" aria-hidden="true"><path class=${`f${seat.seat + 1}`} d=${shapeOf(seat.seat, 8)} /></svg>
      <span class="words">${t("eight.stone", {seat: seat.seat + 1})}${seat.seat === viewer ? ` (${t("seat.you")})` : ""} <span class="dim">${[seat.name ? t("eight.last", {cell: seat.name, n: seat.longest}) : "",
        seat.score, seat.outcome].filter(Boolean).join(" · ")}</span></span></li>`)}</ul>
    <${HeatLegend} heat=${heat} t=${t} />
  </div>`;
}

/** The rows told before if these read the same: what was drawn of them stays. */
function useSame(cells) {
  const kept = useRef(cells);
  if (kept.current.join() !== cells.join()) kept.current = cells;
  return kept.current;
}

/** {text} of the cell chosen, kept by the page if it wants to, else here. */
function useChoice({selection, onSelect}) {
  const own = useState(null);
  return onSelect ? [selection, onSelect] : own;
}

const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);

/** How cells lie in the box: see `Layers`; `middle` is the cell in the middle, kept on the board. */
function place({size: wish, middle}, {rows, cols, least, width, height}) {
  const size = Math.max(wish, least);
  const begin = (centre, span, all) => (span >= all ? -(span - all) / 2 : Math.min(Math.max(centre + 0.5 - span / 2, 0), all - span));
  const [down, right] = [(height - EDGE) / size, Math.max(width - EDGE, 1) / size];
  const [top, left] = [Math.max(begin(middle[0], down, rows), 0), begin(middle[1], right, cols)];
  return {
    width, height, size,
    middle: [top + down / 2 - 0.5, left + right / 2 - 0.5],
    x: (col) => EDGE + (col - left) * size,
    y: (row) => EDGE + (row - top) * size,
    view: {
      top: Math.max(Math.floor(top), 0), bottom: Math.min(Math.ceil(top + down), rows),
      left: Math.max(Math.floor(left), 0), right: Math.min(Math.ceil(left + right), cols),
    },
  }; // prettier-ignore
}

/** [{row, col, value}] of the heat, hottest first. */
function warmCells(open, heat, rows, cols) {
  const found = [];
  for (const [text, action] of heat ? open : []) {
    if (!(action in heat.values)) continue;
    const [row, col] = placeOf(text);
    if (row < rows && col < cols) found.push({row, col, value: heat.values[action]});
  }
  return found.sort((a, b) => b.value - a.value);
}

/** Rows or columns that get a label: all, or every fifth where they are close. */
function labels(from, to, size) {
  const step = size >= WRITTEN ? 1 : size >= 5 ? 5 : 10;
  const found = [];
  for (let i = from; i < to; i++) if (step === 1 || (i + 1) % step === 0) found.push(i);
  return found;
}

function cellWords(scene, [row, col], t) {
  const stone = scene.cells[row][col];
  const threat = scene.threats.filter(({place: [r, c]}) => r === row && c === col).map(({seat}) => `${t("eight.stone", {seat: seat + 1})}: ${t("eight.threat")}`);
  return [`${cellText(row, col)}: ${stone === "." ? t("eight.empty") : t("eight.stone", {seat: stone})}`, ...threat].join(" · ");
}

/** An SVG path of a seat's shape around 0, 0. */
function shapeOf(seat, r) {
  if (seat === 0) return `M${-r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${-r} 0Z`;
  let d = "";
  const path = {moveTo: (px, py) => (d += `M${px.toFixed(2)} ${py.toFixed(2)}`), lineTo: (px, py) => (d += `L${px.toFixed(2)} ${py.toFixed(2)}`)};
  path.rect = (px, py, w, h) => (d += `M${px} ${py}h${w}v${h}h${-w}Z`);
  outline(path, seat, 0, 0, r);
  return d;
}

const Ghost = ({at, seat, r}) => html`<path class=${`f${seat + 1}`} opacity="0.6" transform=${`translate(${at.join(" ")})`} d=${shapeOf(seat, r)} />`;

const Mark = ({at, seat, r, dashed}) => html`<path class=${`threat p${seat + 1}`} stroke-dasharray=${dashed ? "3 3" : "none"} transform=${`translate(${at.join(" ")})`} d=${shapeOf(seat, r)} />`;

/** The rank of a candidate: in a corner of its cell, beside a ring where cells are small. */
function Candidate({at: [cx, cy], number: [x, y], small, rank, size}) {
  const r = Math.max(size / 2, 3);
  const far = Math.hypot(x - cx, y - cy);
  const along = (part) => `${cx + (x - cx) * part} ${cy + (y - cy) * part}`;
  return html`<g class="candidate">${small && html`<circle cx=${cx} cy=${cy} r=${r} />`}
    ${small && far > r + DIGIT && html`<path d=${`M${along(r / far)}L${along(1 - 7 / far)}`} />`}
    <text x=${x} y=${y}>${rank}</text></g>`;
}

/**
 * Where the numbers of candidates at some places stand (false: out of sight): [{at, number, rank,
 * small}]. Where cells are small they keep clear of each other and of the rings.
 */
function ranked(places, size, width, height) {
  const small = size < WRITTEN + 8;
  const found = [];
  places.forEach((at, i) => {
    if (!at) return;
    const near = [at[0] + size * 0.32, at[1] - size * 0.32];
    const inside = ([x, y]) => x > EDGE + 6 && y > EDGE + 6 && x < width - 6 && y < height - 6;
    const free = (spot) => inside(spot) && places.every((other) => !other || apart(other, [spot]) > DIGIT - 2) && found.every(({number}) => apart(number, [spot]) > DIGIT);
    const clear = (spot) => free(spot) && found.every((old) => apart(spot, [old.at, old.number]) > DIGIT / 2 && apart(old.number, [at, spot]) > DIGIT / 2);
    const around = small ? [1, 2, 3, 4, 5].flatMap((far) => AROUND.map((way) => at.map((x, axis) => x + (size / 2 + far * DIGIT) * way[axis]))) : [];
    found.push({at, number: around.find(clear) || around.find(free) || near, rank: i + 1, small});
  });
  return found;
}

/** Pixels from a point to a line from a to b, or to the point a. */
function apart([x, y], [a, b = a]) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const part = Math.min(Math.max(((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy || 1), 0), 1);
  return Math.hypot(x - a[0] - part * dx, y - a[1] - part * dy);
}

/** Taps, drags and pinches: a tap chooses, a drag moves a board that is not whole, two fingers zoom. */
function usePointers({size, whole, away, spot, hold, under, choose, point}) {
  const down = useRef(new Map()); // pointer -> pixels from the middle
  const from = useRef(null); // what the fingers hold

  const between = () => [0, 1].map((i) => [...down.current.values()].reduce((sum, place) => sum + place[i], 0) / down.current.size);
  const span = () => {
    const [a, b] = [...down.current.values()];
    return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
  };
  const take = (moved) => {
    const middle = between();
    from.current = down.current.size ? {middle, cell: spot(middle), size, span: span(), moved} : null;
  };
  const leave = (event) => {
    if (!down.current.delete(event.pointerId)) return null;
    const held = from.current;
    take(true); // a finger less holds another place
    return held;
  };
  return {
    onPointerDown(event) {
      if (event.button) return;
      down.current.set(event.pointerId, away(event));
      take(down.current.size > 1);
    },
    onPointerMove(event) {
      point(under(event));
      const held = from.current;
      if (!down.current.has(event.pointerId)) return;
      down.current.set(event.pointerId, away(event));
      const middle = between();
      if (Math.hypot(middle[0] - held.middle[0], middle[1] - held.middle[1]) > 8) held.moved = true;
      if (!held.moved || (whole && !held.span)) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      hold(held.cell, middle, held.span ? (held.size * span()) / Math.max(held.span, 1) : held.size);
    },
    onPointerUp(event) {
      const held = leave(event);
      const cell = under(event);
      if (held && !held.moved && cell) choose(cell);
    },
    onPointerCancel: leave,
    onPointerLeave: () => point(null),
  };
}
