/** What the canvases of Eight-in-a-Row show: grid, heat, stones, and the map of the whole board. */

import {html, useEffect, useLayoutEffect, useRef, useState} from "../vendor/htm/standalone.module.js";
import {shade, valueText} from "../heat.js";
import {inks} from "../ink.js";

const COLOURS = ["felt", "grid", "five", "rim", "last", "t1", "t2", "t3", "t4", "heat", "good", "bad", "veil"];
const MAP = 132; // pixels of the map's longer side
const RIM = 8; // pixels of a cell below which stones have no rim
const VALUES = 26; // pixels of a cell from which on its heat is written on it

/** The outline of a stone around x, y: disc, diamond, square, hexagon. */
export function outline(path, seat, x, y, r) {
  if (seat === 0) {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  } else if (seat === 1) corners(path, 4, x, y, 1.16 * r);
  else if (seat === 2) path.rect(x - 0.86 * r, y - 0.86 * r, 1.72 * r, 1.72 * r);
  else corners(path, 6, x, y, 1.06 * r);
}

function corners(path, n, x, y, r) {
  for (let i = 0; i <= n; i++) {
    const angle = (2 * Math.PI * i) / n;
    path[i ? "lineTo" : "moveTo"](x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
}

/** The page's colours by name, read again when they change. */
export function useColours() {
  const read = () => inks(...COLOURS);
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

/** An empty canvas to draw on in CSS pixels. */
function pen(canvas, width, height) {
  const dense = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * dense), Math.round(height * dense)];
  const context = canvas.getContext("2d");
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  } else {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, h);
  }
  context.setTransform(dense, 0, 0, dense, 0, 0);
  return context;
}

const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);

/** A picture of the board, one pixel a cell: heat, and a veil over cells that are not `seen`. */
export function heatImage({rows, cols, cells}, warm, heat, seen, colours) {
  if (!warm.length && !seen) return null;
  const image = new ImageData(cols, rows);
  const put = (row, col, tint, opacity) => image.data.set([...tint, Math.round(255 * opacity)], 4 * (row * cols + col));
  const tints = {heat: channels(colours.heat), "heat-good": channels(colours.good), "heat-bad": channels(colours.bad)};
  const veil = channels(colours.veil);
  for (let row = 0; seen && row < rows; row++) {
    for (let col = 0; col < cols; col++) if (cells[row][col] === "." && !seen.has(row * cols + col)) put(row, col, veil, 0.5);
  }
  for (const {row, col, value} of warm) {
    const {name, opacity} = shade(heat, value);
    put(row, col, tints[name], opacity);
  }
  const canvas = new OffscreenCanvas(cols, rows);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/**
 * The three layers below the SVG. `board` is {rows, cols, cells, players}; `at`, how cells lie in
 * the box, {width, height, x, y, size, view}, with `view` {top, bottom, left, right} those in
 * sight. A layer is drawn when what it shows changes, and only what is in sight.
 */
export function Layers({board, at, image, warm, heat, colours}) {
  const [grid, hot, stones] = [useRef(null), useRef(null), useRef(null)];
  useLayoutEffect(() => drawGrid(pen(grid.current, at.width, at.height), board, at, colours), [at, board.rows, board.cols, colours]);
  useLayoutEffect(() => drawHeat(pen(hot.current, at.width, at.height), board, at, image, warm, heat, colours), [image && at, image, colours]);
  useLayoutEffect(() => drawStones(pen(stones.current, at.width, at.height), board, at, colours), [at, board, colours]);
  return [grid, hot, stones].map((canvas, i) => html`<canvas key=${i} ref=${canvas} aria-hidden="true"></canvas>`);
}

function drawGrid(context, {rows, cols}, {x, y, size, view}, colours) {
  context.fillStyle = colours.felt;
  context.fillRect(x(view.left), y(view.top), (view.right - view.left) * size, (view.bottom - view.top) * size);
  for (const strong of [false, true]) {
    context.beginPath();
    context.strokeStyle = strong ? colours.five : colours.grid;
    context.lineWidth = 1;
    const drawn = (i, all) => (i % 5 === 0 || i === all) === strong && (strong || size >= 6);
    for (let col = view.left; col <= view.right; col++) {
      if (!drawn(col, cols)) continue;
      context.moveTo(Math.round(x(col)) + 0.5, y(view.top));
      context.lineTo(Math.round(x(col)) + 0.5, y(view.bottom));
    }
    for (let row = view.top; row <= view.bottom; row++) {
      if (!drawn(row, rows)) continue;
      context.moveTo(x(view.left), Math.round(y(row)) + 0.5);
      context.lineTo(x(view.right), Math.round(y(row)) + 0.5);
    }
    context.stroke();
  }
}

function drawHeat(context, {rows, cols}, {x, y, size}, image, warm, heat, colours) {
  if (!image) return;
  context.imageSmoothingEnabled = false;
  context.drawImage(image, x(0), y(0), cols * size, rows * size);
  if (size < VALUES) return;
  context.font = `${Math.min(size / 3, 13)}px sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = colours.last;
  for (const {row, col, value} of warm.slice(0, 40)) context.fillText(valueText(heat, value), x(col + 0.5), y(row + 0.5));
}

function drawStones(context, {cells, players}, {x, y, size, view}, colours) {
  for (let seat = 0; seat < players; seat++) {
    const mark = String(seat + 1);
    context.beginPath(); // one path for all stones of a seat
    for (let row = view.top; row < view.bottom; row++) {
      const line = cells[row];
      for (let col = view.left; col < view.right; col++) if (line[col] === mark) outline(context, seat, x(col + 0.5), y(row + 0.5), size * 0.36);
    }
    context.fillStyle = colours[`t${seat + 1}`];
    context.fill();
    if (size < RIM) continue;
    context.strokeStyle = colours.rim;
    context.lineWidth = size > 16 ? 1.5 : 0.75;
    context.stroke();
  }
}

/** The whole board, a pixel or more a cell, with the part in view; a click or a drag moves that. */
export function Minimap({board, view, image, colours, marks, onLook, t}) {
  const canvas = useRef(null);
  const size = MAP / Math.max(board.rows, board.cols);
  const [width, height] = [board.cols * size, board.rows * size];
  useLayoutEffect(() => {
    const context = pen(canvas.current, width, height);
    context.imageSmoothingEnabled = false;
    if (image) context.drawImage(image, 0, 0, width, height);
    const dot = Math.max(size, 1.5);
    board.cells.forEach((line, row) => {
      for (let col = 0; col < board.cols; col++) {
        if (line[col] === ".") continue;
        context.fillStyle = colours[`t${line[col]}`];
        context.fillRect(col * size, row * size, dot, dot);
      }
    });
  }, [board, image, colours, width, height]);
  function go(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const at = canvas.current.getBoundingClientRect();
    onLook([(event.clientY - at.top) / size - 0.5, (event.clientX - at.left) / size - 0.5]);
  }
  return html`<div class="eight-map" data-testid="minimap" role="img" aria-label=${t("eight.map")} style=${{width: `${width}px`, height: `${height}px`}}
      onPointerDown=${go} onPointerMove=${go}>
    <canvas ref=${canvas}></canvas>
    <svg viewBox=${`0 0 ${width} ${height}`} aria-hidden="true">
      ${marks.map(([row, col]) => html`<circle cx=${(col + 0.5) * size} cy=${(row + 0.5) * size} r="4" />`)}
      <rect x=${view.left * size} y=${view.top * size} width=${(view.right - view.left) * size} height=${(view.bottom - view.top) * size} />
    </svg></div>`;
}
