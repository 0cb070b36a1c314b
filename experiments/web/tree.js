/**
 * The search tree: a node's size is its visits, its colour the value for the seat that chose it,
 * the width of its edge the prior; siblings from left to right by visits. A click folds.
 */

import {html, useLayoutEffect, useMemo, useRef, useState} from "./vendor/htm/standalone.module.js";
import {savePng, saveSvg} from "./picture.js";
import {useWidth} from "./width.js";

const COLUMN = 70;
const ROW = 112;
const LABEL = 30; // height of a node's two lines of text
const OPEN_DEPTH = 2; // levels unfolded at first

/** Colour of a value -1 to 1: red, grey, green; the number is written beside it. */
export function valueColour(value) {
  const ends = value < 0 ? [196, 40, 60] : [22, 140, 96];
  const far = Math.min(Math.abs(value), 1);
  return `rgb(${ends.map((end, i) => Math.round([138, 143, 152][i] + far * (end - [138, 143, 152][i]))).join(" ")})`;
}

const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const count = (visits) => (Number.isInteger(visits) ? String(visits) : visits.toFixed(1));

/**
 * Places of the nodes: {node, x, y, r, path, parent}; `path` names a node by its children's
 * numbers, "0.2". `open(path, depth)`: whether what is below is shown.
 */
export function layout(tree, open) {
  const placed = [];
  let column = 0;
  const most = Math.max(tree.visits, 1);
  const radius = (visits) => 5 + 17 * Math.sqrt(visits / most);

  function visit(node, depth, path, parent) {
    const at = {node, path, parent, depth, y: 30 + depth * ROW, r: radius(node.visits)};
    placed.push(at);
    const shown = open(path, depth) ? node.children : [];
    const below = shown.map((child, i) => visit(child, depth + 1, path ? `${path}.${i}` : String(i), at));
    if (shown.length && node.others && node.others.moves) {
      const others = {others: node.others, parent: at, path: `${path}.+`, y: at.y + ROW, x: 40 + COLUMN * column++, r: 6};
      placed.push(others);
      below.push(others);
    }
    at.x = below.length ? (below[0].x + below[below.length - 1].x) / 2 : 40 + COLUMN * column++;
    return at;
  }

  visit(tree, 0, "", null);
  const width = 40 + COLUMN * Math.max(column, 3);
  const height = 70 + Math.max(...placed.map((at) => at.y));
  return {placed, width, height};
}

export function Tree({tree, names, t}) {
  const picture = useRef(null);
  const box = useRef(null);
  const [folds, setFolds] = useState({});
  const {placed, width, height} = useMemo(
    () => (tree ? layout(tree, (path, depth) => folds[path] ?? depth < OPEN_DEPTH) : {placed: []}),
    [tree, folds],
  );
  const drawn = Boolean(tree && tree.children.length);
  const space = useWidth(box, drawn); // 0 while it is folded away
  useLayoutEffect(() => {
    if (drawn && space) box.current.scrollLeft = placed[0].x - space / 2; // the root is what is seen first
  }, [tree, space > 0]);
  if (!drawn) return html`<p class="empty" data-testid="tree">${t("tree.empty")}</p>`;
  const flip = (at) => setFolds({...folds, [at.path]: !(folds[at.path] ?? at.depth < OPEN_DEPTH)});
  return html`<section class="tree" data-testid="tree" aria-label=${t("tree.label")}>
    <div class="tree-tools">
      <button type="button" data-testid="tree-svg" onClick=${() => saveSvg(picture.current, "tree")}>${t("tree.svg")}</button>
      <button type="button" data-testid="tree-png" onClick=${() => savePng(picture.current, "tree")}>${t("tree.png")}</button>
      <small>${t("tree.legend")}</small>
    </div>
    <div class="tree-scroll" ref=${box} tabindex="0" role="group" aria-label=${t("tree.label")}
        onKeyDown=${(event) => event.key.startsWith("Arrow") && event.stopPropagation()}>
      <svg ref=${picture} viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} font-size="12" text-anchor="middle">
        ${placed.map((at) => at.parent && html`<${Edge} key=${`e${at.path}`} at=${at} />`)}
        ${placed.map((at) => (at.others ? html`<${Others} key=${at.path} at=${at} t=${t} />` : html`<${Node} key=${at.path} at=${at} names=${names} t=${t} flip=${flip} />`))}
      </svg>
    </div>
  </section>`;
}

/** An edge from below the parent's text to the top of the node. */
function Edge({at}) {
  const {parent} = at;
  const from = parent.y + parent.r + LABEL;
  const to = at.y - at.r;
  const middle = (from + to) / 2;
  const width = at.others ? 1 : 1 + 9 * at.node.prior;
  return html`<path d=${`M${parent.x} ${from}C${parent.x} ${middle} ${at.x} ${middle} ${at.x} ${to}`}
    fill="none" stroke="currentColor" stroke-opacity="0.35" stroke-width=${width.toFixed(1)} stroke-dasharray=${at.others ? "3 4" : "none"} />`;
}

function Node({at, names, t, flip}) {
  const {node, x, y, r, path} = at;
  const value = node.value[node.seat];
  const text = node.text || t("tree.root");
  const who = (names && names[node.seat]) || t("board.seat", {seat: node.seat});
  const words = t("tree.node", {text: `${who}: ${text}`, visits: count(node.visits), prior: `${Math.round(100 * node.prior)} %`, value: signed(value)});
  const folds = node.children.length > 0;
  const onKey = (event) => {
    if (folds && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      flip(at);
    }
  };
  return html`<g class="tree-node" role=${folds ? "button" : "img"} tabindex=${folds ? 0 : -1} aria-label=${words} data-path=${path}
      onClick=${() => folds && flip(at)} onKeyDown=${onKey}>
    <title>${words}</title>
    <circle cx=${x} cy=${y} r=${r.toFixed(1)} fill=${valueColour(value)} stroke="currentColor" stroke-width=${folds ? 2 : 0.75} />
    <text x=${x} y=${y + r + 13} fill="currentColor" font-weight="bold">${short(text)}</text>
    <text x=${x} y=${y + r + 26} fill="currentColor" font-size="10">${count(node.visits)} · ${signed(value)}</text>
  </g>`;
}

/** A long move is cut; its whole text is in the title. */
const short = (text) => (text.length > 11 ? `${text.slice(0, 10)}…` : text);

function Others({at, t}) {
  const {moves, visits} = at.others;
  const words = t("tree.others", {n: moves, v: count(visits)});
  return html`<g><title>${words}</title>
    <rect x=${at.x - 7} y=${at.y - 7} width="14" height="14" rx="3" fill="none" stroke="currentColor" stroke-dasharray="3 2" />
    <text x=${at.x} y=${at.y + 20} fill="currentColor" font-size="10">+${moves}</text>
    <text x=${at.x} y=${at.y + 32} fill="currentColor" font-size="10">${count(visits)}</text></g>`;
}
