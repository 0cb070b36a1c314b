/**
 * Eight-in-a-Row: canvas layers for grid, heat and stones, of which only the part in view is
 * drawn, and one SVG for labels, rings and the ghost. A tap shows the stone, a second one puts it.
 */

import {html, useEffect, useLayoutEffect, useMemo, useRef, useState} from "../vendor/htm/standalone.module.js";
import {HeatLegend, shade, valueText} from "../heat.js";

const EDGE = 22; // pixels for the labels on the left and at the top
const FIT = 14; // pixels of a cell below which a board does not start as a whole
const NEAREST = 64; // pixels of a cell at most
const MAP = 132; // pixels of the map's longer side

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

/** The outline of a stone around 0, 0: disc, diamond, square, hexagon. */
function outline(path, seat, r) {
  if (seat === 0) path.arc(0, 0, r, 0, 2 * Math.PI);
  else if (seat === 1) corners(path, 4, 1.16 * r, 0);
  else if (seat === 2) path.rect(-0.86 * r, -0.86 * r, 1.72 * r, 1.72 * r);
  else corners(path, 6, 1.06 * r, 0);
}

function corners(path, n, r, turn) {
  for (let i = 0; i <= n; i++) {
    const angle = turn + (2 * Math.PI * i) / n;
    path[i ? "lineTo" : "moveTo"](r * Math.cos(angle), r * Math.sin(angle));
  }
}

/** The page's colours by name, read again when they change. */
function useColours() {
  const read = () => {
    const style = getComputedStyle(document.documentElement);
    const names = ["felt", "grid", "five", "rim", "last", "t1", "t2", "t3", "t4", "heat", "good", "bad", "focus"];
    return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  };
  const [colours, setColours] = useState(read);
  useEffect(() => {
    const again = () => setColours(read());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const watch = new MutationObserver(again);
    watch.observe(document.documentElement, {attributeFilter: ["data-theme"]});
    dark.addEventListener("change", again);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", again);
    };
  }, []);
  return colours;
}

/** Width of an element in pixels, followed while it changes. */
function useWidth(box) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    setWidth(Math.floor(box.current.clientWidth));
    return () => watch.disconnect();
  }, []);
  return width;
}

/** A canvas ready to draw on in CSS pixels. */
function pen(canvas, width, height) {
  const dense = devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  const context = canvas.getContext("2d");
  context.setTransform(dense, 0, 0, dense, 0, 0);
  return context;
}

/** #rgb, #rrggbb or rgb(...) as three numbers. */
function channels(colour) {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  return hex ? hex.slice(1).map((pair) => parseInt(pair, 16)) : colour.match(/\d+/g).slice(0, 3).map(Number);
}

/** A picture of the heat, one pixel a cell. */
function heatImage(scene, warm, heat, colours) {
  const image = new ImageData(scene.cols, scene.rows);
  const tints = {heat: channels(colours.heat), "heat-good": channels(colours.good), "heat-bad": channels(colours.bad)};
  for (const {row, col, value} of warm) {
    const {name, opacity} = shade(heat, value);
    image.data.set([...tints[name], Math.round(255 * opacity)], 4 * (row * scene.cols + col));
  }
  const canvas = new OffscreenCanvas(scene.cols, scene.rows);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export default function Board({scene, legal, selection, onSelect, onPlay, heat, candidates, hint, busy, viewer, t}) {
  const box = useRef(null);
  const layers = {grid: useRef(null), heat: useRef(null), stones: useRef(null)};
  const colours = useColours();
  const width = useWidth(box);
  const {rows, cols} = scene;
  const space = Math.max(width - EDGE, 1);
  const smallest = space / Math.max(cols, 1);
  const height = EDGE + Math.min(Math.ceil(smallest * rows), Math.max(space, 320));
  const least = Math.min(smallest, (height - EDGE) / rows);

  // Where we look: pixels of a cell, and the cell at the upper left corner (with fractions).
  const [wanted, look] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [hover, setHover] = useState(null);
  const [threats, setThreats] = useState(false);
  const newest = scene.newest === null ? null : scene.seats[scene.newest].last;
  const first = {size: Math.max(least, Math.min(FIT, NEAREST)), middle: newest || [(rows - 1) / 2, (cols - 1) / 2]};
  const eye = useMemo(() => place(wanted || first, {rows, cols, least, width: space, height: height - EDGE}), [wanted, rows, cols, least, space, height, width]);
  const whole = eye.size <= least * 1.01;

  const open = useMemo(() => new Map((legal || []).map(({action, text}) => [text, action])), [legal]);
  const warm = useMemo(() => warmCells(legal, heat, rows, cols), [legal, heat, rows, cols]);
  const ghost = selection && open.has(selection.text) ? placeOf(selection.text) : null;
  const x = (col) => EDGE + (col - eye.left) * eye.size;
  const y = (row) => EDGE + (row - eye.top) * eye.size;
  const mid = ([row, col]) => [x(col + 0.5), y(row + 0.5)];
  const seen = {
    top: Math.max(Math.floor(eye.top), 0), bottom: Math.min(Math.ceil(eye.top + (height - EDGE) / eye.size), rows),
    left: Math.max(Math.floor(eye.left), 0), right: Math.min(Math.ceil(eye.left + space / eye.size), cols),
  }; // prettier-ignore
  const inView = ([row, col]) => row >= seen.top && row < seen.bottom && col >= seen.left && col < seen.right;

  useLayoutEffect(() => {
    if (width) drawGrid(pen(layers.grid.current, width, height), {x, y, seen, eye, colours, rows, cols});
  }, [width, height, eye, colours, rows, cols]);
  useLayoutEffect(() => {
    if (!width) return;
    const context = pen(layers.heat.current, width, height);
    if (!warm.length) return;
    context.imageSmoothingEnabled = false;
    context.drawImage(heatImage(scene, warm, heat, colours), x(0), y(0), cols * eye.size, rows * eye.size);
    if (eye.size < 26) return;
    context.font = `${Math.min(eye.size / 3, 13)}px sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = colours.last;
    for (const {row, col, value} of warm.slice(0, 40)) context.fillText(valueText(heat, value), ...mid([row, col]));
  }, [width, height, eye, colours, warm, heat]);
  useLayoutEffect(() => {
    if (width) drawStones(pen(layers.stones.current, width, height), {scene, mid, seen, eye, colours});
  }, [width, height, eye, colours, scene]);

  /** The cell under a pointer, null off the board. */
  function under(event) {
    const at = box.current.getBoundingClientRect();
    const col = Math.floor((event.clientX - at.left - EDGE) / eye.size + eye.left);
    const row = Math.floor((event.clientY - at.top - EDGE) / eye.size + eye.top);
    const outside = event.clientX - at.left < EDGE || event.clientY - at.top < EDGE;
    return outside || row < 0 || col < 0 || row >= rows || col >= cols ? null : [row, col];
  }

  function choose(cell) {
    const text = cellText(...cell);
    setCursor(cell);
    if (busy || !open.has(text)) onSelect(null);
    else if (selection && selection.text === text) {
      onSelect(null);
      onPlay(text);
    } else onSelect({text});
  }

  function zoom(factor, around = cursor || newest || [rows / 2, cols / 2]) {
    const size = Math.min(Math.max(eye.size * factor, least), NEAREST);
    look({size, middle: size > least * 1.01 ? around : [(rows - 1) / 2, (cols - 1) / 2]});
  }

  function onKey(event) {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (step) {
      const from = cursor || newest || [Math.floor((rows - 1) / 2), Math.floor((cols - 1) / 2)];
      const big = event.shiftKey ? 5 : 1;
      const to = cursor ? [clamp(from[0] + big * step[0], rows), clamp(from[1] + big * step[1], cols)] : from;
      setCursor(to);
      if (!inView(to)) look({size: eye.size, middle: to});
    } else if ((event.key === "Enter" || event.key === " ") && cursor) choose(cursor);
    else if (event.key === "+" || event.key === "=") zoom(1.4);
    else if (event.key === "-") zoom(1 / 1.4);
    else if (event.key === "Escape") onSelect(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const pointers = usePointers({box, eye, whole, under, choose, look, least, setHover});
  useEffect(() => {
    const wheel = (event) => {
      if (!event.ctrlKey && whole) return; // the page scrolls
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2, under(event) || undefined);
    };
    const board = box.current;
    board.addEventListener("wheel", wheel, {passive: false});
    return () => board.removeEventListener("wheel", wheel);
  });

  const told = hover || cursor;
  const best = hint ? placeOf(hint) : null;
  return html`<div class="eight" data-testid="board">
    <div class="eight-board" ref=${box} style=${{height: `${height}px`, maxWidth: `min(${EDGE + cols * NEAREST}px, max(340px, 100vh - 220px))`, touchAction: whole ? "pan-y" : "none"}} tabindex="0" role="application" data-keys
        aria-label=${t("eight.board")} aria-describedby="eight-here" onKeyDown=${onKey} ...${pointers}>
      <canvas ref=${layers.grid} aria-hidden="true"></canvas><canvas ref=${layers.heat} aria-hidden="true"></canvas><canvas ref=${layers.stones} aria-hidden="true"></canvas>
      <svg aria-hidden="true">
        ${scene.lines.map((line) => html`<path class="won" stroke-width=${eye.size / 5} d=${`M${mid(line[0]).join(" ")}L${mid(line[line.length - 1]).join(" ")}`} />`)}
        ${threats && scene.threats.filter(({place: at}) => inView(at)).map(({seat, place: at, wins}) => html`<${Mark} at=${mid(at)} seat=${seat} r=${eye.size * 0.3} dashed=${!wins} />`)}
        ${candidates && candidates.slice(0, 5).map(({text}, i) => placeOf(text)).filter((at) => at && inView(at)).map((at, i) => html`<text class="label" x=${mid(at)[0] + eye.size * 0.32}
          y=${mid(at)[1] - eye.size * 0.3}>${i + 1}</text>`)}
        ${best && html`<rect class="best" x=${x(best[1]) + 2} y=${y(best[0]) + 2} width=${Math.max(eye.size - 4, 3)} height=${Math.max(eye.size - 4, 3)} rx="4" />`}
        ${scene.seats.map(({seat, last}) => last && inView(last) && html`<circle key=${seat} class="ring" cx=${mid(last)[0]} cy=${mid(last)[1]} r=${eye.size * (seat === scene.newest ? 0.46 : 0.42)}
          stroke-width=${seat === scene.newest ? 3 : 1.5} />`)}
        ${ghost && scene.mover !== null && html`<${Ghost} at=${mid(ghost)} seat=${scene.mover} r=${eye.size * 0.36} />`}
        ${cursor && inView(cursor) && html`<rect class="cursor" x=${x(cursor[1]) + 1} y=${y(cursor[0]) + 1} width=${Math.max(eye.size - 2, 3)} height=${Math.max(eye.size - 2, 3)} />`}
        <rect class="edge" width="100%" height=${EDGE} /><rect class="edge" width=${EDGE} height="100%" />
        ${labels(seen.left, seen.right, eye.size).map((col) => html`<text class="label" x=${x(col + 0.5)} y=${EDGE / 2}>${columnText(col)}</text>`)}
        ${labels(seen.top, seen.bottom, eye.size).map((row) => html`<text class="label" x=${EDGE / 2} y=${y(row + 0.5)}>${row + 1}</text>`)}
      </svg>
    </div>
    <p class="eight-facts" id="eight-here" role="status" data-testid="prompt">${selection ? html`<strong>${t("eight.confirm", {cell: selection.text})}</strong>` : told ? cellWords(scene, told, t) : scene.headline}</p>
    <div class="row">
      <button type="button" data-testid="zoom-in" aria-label=${t("eight.zoom_in")} title=${t("eight.zoom_in")} onClick=${() => zoom(1.4)}>+</button>
      <button type="button" data-testid="zoom-out" aria-label=${t("eight.zoom_out")} title=${t("eight.zoom_out")} disabled=${whole} onClick=${() => zoom(1 / 1.4)}>−</button>
      <button type="button" data-testid="whole" disabled=${whole} onClick=${() => look({size: least, middle: [(rows - 1) / 2, (cols - 1) / 2]})}>${t("eight.whole")}</button>
      <label class="small"><input type="checkbox" data-testid="threats" checked=${threats} onChange=${(event) => setThreats(event.target.checked)} /> ${t("eight.threats")}</label>
      <span class="small dim">${scene.about}${scene.progress ? ` · ${scene.progress}` : ""}</span>
    </div>
    ${(!whole || rows * cols > 900) && html`<${Map_} scene=${scene} warm=${warm} heat=${heat} colours=${colours} seen=${seen} onLook=${(middle) => look({size: eye.size, middle})} t=${t} />`}
    <ul class="seats small">${scene.seats.map((seat) => html`<li key=${seat.seat} class=${`team-${seat.seat + 1} ${seat.seat === scene.mover ? "turn" : ""}`}>
      <svg viewBox="-10 -10 20 20" width="20" height="20" aria-hidden="true"><path class=${`f${seat.seat + 1}`} d=${shapeOf(seat.seat, 8)} /></svg>
      <span class="words">${t("eight.stone", {seat: seat.seat + 1})}${seat.seat === viewer ? ` (${t("seat.you")})` : ""} <span class="dim">${[seat.name ? t("eight.last", {cell: seat.name, n: seat.longest}) : "",
        seat.score, seat.outcome].filter(Boolean).join(" · ")}</span></span></li>`)}</ul>
    <${HeatLegend} heat=${heat} t=${t} />
  </div>`;
}

const clamp = (value, size) => Math.min(Math.max(value, 0), size - 1);

/** {size, top, left}: the eye on a middle, kept on the board. */
function place({size, middle}, {rows, cols, least, width, height}) {
  const used = Math.max(size, least);
  const keep = (centre, span, all) => (span >= all ? -(span - all) / 2 : Math.min(Math.max(centre + 0.5 - span / 2, 0), all - span));
  return {size: used, top: Math.max(keep(middle[0], height / used, rows), 0), left: keep(middle[1], width / used, cols)};
}

/** [{row, col, value}] of the heat, hottest first. */
function warmCells(legal, heat, rows, cols) {
  if (!heat) return [];
  const found = [];
  for (const {action, text} of legal || []) {
    if (!(action in heat.values)) continue;
    const [row, col] = placeOf(text);
    if (row < rows && col < cols) found.push({row, col, value: heat.values[action]});
  }
  return found.sort((a, b) => b.value - a.value);
}

function drawGrid(context, {x, y, seen, eye, colours, rows, cols}) {
  context.fillStyle = colours.felt;
  context.fillRect(x(seen.left), y(seen.top), (seen.right - seen.left) * eye.size, (seen.bottom - seen.top) * eye.size);
  for (const strong of [false, true]) {
    context.beginPath();
    context.strokeStyle = strong ? colours.five : colours.grid;
    context.lineWidth = 1;
    const drawn = (i, all) => (i % 5 === 0 || i === all) === strong && (strong || eye.size >= 6);
    for (let col = seen.left; col <= seen.right; col++) {
      if (!drawn(col, cols)) continue;
      context.moveTo(Math.round(x(col)) + 0.5, y(seen.top));
      context.lineTo(Math.round(x(col)) + 0.5, y(seen.bottom));
    }
    for (let row = seen.top; row <= seen.bottom; row++) {
      if (!drawn(row, rows)) continue;
      context.moveTo(x(seen.left), Math.round(y(row)) + 0.5);
      context.lineTo(x(seen.right), Math.round(y(row)) + 0.5);
    }
    context.stroke();
  }
}

function drawStones(context, {scene, mid, seen, eye, colours}) {
  const r = eye.size * 0.36;
  for (let seat = 0; seat < scene.seats.length; seat++) {
    context.fillStyle = colours[`t${seat + 1}`];
    context.strokeStyle = colours.rim;
    context.lineWidth = eye.size > 16 ? 1.5 : 0.5;
    for (let row = seen.top; row < seen.bottom; row++) {
      const line = scene.cells[row];
      for (let col = seen.left; col < seen.right; col++) {
        if (line[col] !== String(seat + 1)) continue;
        const [cx, cy] = mid([row, col]);
        context.save();
        context.translate(cx, cy);
        context.beginPath();
        outline(context, seat, r);
        context.fill();
        context.stroke();
        context.restore();
      }
    }
  }
}

/** Rows or columns that get a label: all, or every fifth where they are close. */
function labels(from, to, size) {
  const step = size >= 17 ? 1 : size >= 5 ? 5 : 10;
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
  outline(path, seat, r);
  return d;
}

const Ghost = ({at, seat, r}) => html`<path class=${`f${seat + 1}`} opacity="0.6" transform=${`translate(${at.join(" ")})`} d=${shapeOf(seat, r)} />`;

const Mark = ({at, seat, r, dashed}) => html`<path class=${`threat p${seat + 1}`} stroke-dasharray=${dashed ? "3 3" : "none"} transform=${`translate(${at.join(" ")})`} d=${shapeOf(seat, r)} />`;

/** The whole board, a pixel or more a cell, with the part in view. */
function Map_({scene, warm, heat, colours, seen, onLook, t}) {
  const canvas = useRef(null);
  const size = MAP / Math.max(scene.rows, scene.cols);
  const [width, height] = [scene.cols * size, scene.rows * size];
  useLayoutEffect(() => {
    const context = pen(canvas.current, width, height);
    context.imageSmoothingEnabled = false;
    if (warm.length) context.drawImage(heatImage(scene, warm, heat, colours), 0, 0, width, height);
    scene.cells.forEach((line, row) => {
      for (let col = 0; col < scene.cols; col++) {
        if (line[col] === ".") continue;
        context.fillStyle = colours[`t${line[col]}`];
        context.fillRect(col * size, row * size, Math.max(size, 1.5), Math.max(size, 1.5));
      }
    });
    context.strokeStyle = colours.focus;
    context.lineWidth = 2;
    context.strokeRect(seen.left * size, seen.top * size, (seen.right - seen.left) * size, (seen.bottom - seen.top) * size);
  });
  function go(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const at = canvas.current.getBoundingClientRect();
    onLook([(event.clientY - at.top) / size, (event.clientX - at.left) / size]);
  }
  return html`<canvas ref=${canvas} class="eight-map" data-testid="minimap" role="img" aria-label=${t("eight.map")} style=${{width: `${width}px`, height: `${height}px`, touchAction: "none"}}
    onPointerDown=${go} onPointerMove=${go}></canvas>`;
}

/** Taps, drags and pinches: a tap chooses, a drag moves a board that is not whole, a pinch zooms. */
function usePointers({box, eye, whole, under, choose, look, least, setHover}) {
  const down = useRef(new Map());
  const from = useRef(null);

  const middle = () => [eye.top + (box.current.clientHeight - EDGE) / eye.size / 2 - 0.5, eye.left + (box.current.clientWidth - EDGE) / eye.size / 2 - 0.5];
  const span = () => {
    const [a, b] = [...down.current.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };
  return {
    onPointerDown(event) {
      if (event.button) return;
      down.current.set(event.pointerId, {x: event.clientX, y: event.clientY});
      const one = down.current.size === 1;
      from.current = {x: event.clientX, y: event.clientY, eye, middle: middle(), moved: !one, span: one ? 0 : span()};
    },
    onPointerMove(event) {
      setHover(under(event));
      const start = from.current;
      if (!down.current.has(event.pointerId) || !start) return;
      down.current.set(event.pointerId, {x: event.clientX, y: event.clientY});
      if (down.current.size === 2) {
        look({size: Math.min(Math.max((start.eye.size * span()) / Math.max(start.span, 1), least), NEAREST), middle: start.middle});
        return;
      }
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (Math.hypot(dx, dy) > 8) start.moved = true;
      if (!start.moved || whole) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      look({size: start.eye.size, middle: [start.middle[0] - dy / eye.size, start.middle[1] - dx / eye.size]});
    },
    onPointerUp(event) {
      if (!down.current.delete(event.pointerId)) return;
      const start = from.current;
      if (!down.current.size) from.current = null;
      const cell = under(event);
      if (start && !start.moved && cell) choose(cell);
    },
    onPointerCancel(event) {
      down.current.delete(event.pointerId);
      from.current = null;
    },
    onPointerLeave() {
      setHover(null);
    },
  };
}
