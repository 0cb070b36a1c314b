/**
 * The value of the game for every seat over the moves; a click goes to a move. Points judged by
 * too few visits are hidden.
 */

import {html, useMemo, useRef, useState} from "./vendor/htm/standalone.module.js";
import {useWidth} from "./width.js";

const HEIGHT = 190;
const PAD = {left: 34, right: 12, top: 10, bottom: 24};
const DASHES = ["none", "7 4", "2 4", "9 3 2 3"];
const MARKS = [
  (x, y) => html`<circle cx=${x} cy=${y} r="3.5" />`,
  (x, y) => html`<rect x=${x - 3.2} y=${y - 3.2} width="6.4" height="6.4" />`,
  (x, y) => html`<path d=${`M${x} ${y - 4.5}L${x + 4.5} ${y}L${x} ${y + 4.5}L${x - 4.5} ${y}Z`} />`,
  (x, y) => html`<path d=${`M${x} ${y - 4.5}L${x + 4.3} ${y + 3.5}H${x - 4.3}Z`} />`,
];

/** Seats whose values are everywhere the same, as partners' are: [[0, 2], [1, 3]]. */
export function sides(points) {
  if (!points.length) return [];
  const groups = [];
  points[0].value.forEach((_, seat) => {
    const same = groups.find(([first]) => points.every(({value}) => value[first] === value[seat]));
    if (same) same.push(seat);
    else groups.push([seat]);
  });
  return groups;
}

export function Graph({points, names, at, onPick, t}) {
  const box = useRef(null);
  const told = useMemo(() => (points || []).filter((p) => p && p.value).sort((a, b) => a.ply - b.ply), [points]);
  const width = Math.max(useWidth(box, told.length > 0), 240);
  const most = Math.max(0, ...told.map((p) => p.simulations || 0));
  const [least, setLeast] = useState(null);
  const bound = least ?? Math.floor(most / 4);
  const shown = told.filter((p) => (p.simulations || 0) >= bound);
  const groups = useMemo(() => sides(told), [told]);
  if (!told.length) return html`<p class="empty" data-testid="graph">${t("graph.empty")}</p>`;

  const first = told[0].ply;
  const last = Math.max(told[told.length - 1].ply, first + 1, at ?? 0);
  const range = Math.max(1, ...shown.flatMap((p) => p.value.map(Math.abs)));
  const x = (ply) => PAD.left + ((ply - first) / (last - first)) * (width - PAD.left - PAD.right);
  const y = (value) => PAD.top + ((range - value) / (2 * range)) * (HEIGHT - PAD.top - PAD.bottom);
  const who = (seats) => seats.map((seat) => (names && names[seat]) || t("board.seat", {seat})).join(", ");
  const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
  const label = (p) => t("graph.point", {ply: p.ply, values: groups.map((seats) => `${who(seats)} ${signed(p.value[seats[0]])}`).join("; ")});
  const here = shown.find((p) => p.ply === at);

  /** The shown point nearest to a place on the page. */
  function pick(event) {
    const left = event.currentTarget.getBoundingClientRect();
    const ply = first + ((event.clientX - left.x) * (width / left.width) - PAD.left) / (width - PAD.left - PAD.right) * (last - first);
    const near = shown.reduce((best, p) => (Math.abs(p.ply - ply) < Math.abs(best.ply - ply) ? p : best), shown[0]);
    if (near) onPick(near.ply);
  }

  function onKey(event) {
    const before = shown.filter((p) => p.ply < (at ?? last)).pop();
    const after = shown.find((p) => p.ply > (at ?? first));
    const to = {ArrowLeft: before, ArrowRight: after, Home: shown[0], End: shown[shown.length - 1]}[event.key];
    if (!to) return;
    event.preventDefault();
    event.stopPropagation(); // the page has arrow keys of its own
    onPick(to.ply);
  }

  return html`<section class="graph" data-testid="graph" ref=${box}>
    <svg viewBox=${`0 0 ${width} ${HEIGHT}`} width=${width} height=${HEIGHT} role="slider" tabindex="0" aria-label=${t("graph.label")}
        aria-valuemin=${first} aria-valuemax=${last} aria-valuenow=${at ?? first} aria-valuetext=${here ? label(here) : String(at ?? "")}
        font-size="11" onClick=${pick} onKeyDown=${onKey}>
      ${[range, 0, -range].map((v) => html`<g key=${v}><line class="rule" x1=${PAD.left} x2=${width - PAD.right} y1=${y(v)} y2=${y(v)} />
        <text x=${PAD.left - 5} y=${y(v) + 4} text-anchor="end">${v ? signed(v).replace(".00", "") : "0"}</text></g>`)}
      <text x=${PAD.left} y=${HEIGHT - 7}>${first ? first : t("graph.start")}</text>
      <text x=${width - PAD.right} y=${HEIGHT - 7} text-anchor="end">${t("graph.move")} ${last}</text>
      ${at !== undefined && at !== null && html`<line class="now" x1=${x(at)} x2=${x(at)} y1=${PAD.top} y2=${HEIGHT - PAD.bottom} />`}
      ${groups.map((seats, i) => html`<g key=${seats[0]} class=${`series team${i + 1}`}>
        <path d=${shown.map((p, n) => `${n ? "L" : "M"}${x(p.ply).toFixed(1)} ${y(p.value[seats[0]]).toFixed(1)}`).join("")} stroke-dasharray=${DASHES[i % 4]} />
        ${(shown.length <= 60 ? shown : here ? [here] : []).map((p) => MARKS[i % 4](x(p.ply), y(p.value[seats[0]])))}
      </g>`)}
    </svg>
    <p class="graph-legend">${groups.map((seats, i) => html`<span class=${`series team${i + 1}`} key=${seats[0]}>
      <svg viewBox="0 0 34 12" aria-hidden="true"><path d="M1 6H33" stroke-dasharray=${DASHES[i % 4]} />${MARKS[i % 4](17, 6)}</svg> ${who(seats)}</span>`)}
      ${most > 0 && html`<label>${t("graph.least")} <input type="number" min="0" max=${most} value=${bound} data-testid="graph-least"
        onInput=${(event) => setLeast(Math.max(0, Math.min(most, Number(event.target.value) || 0)))} /></label>`}
      ${told.length > shown.length && html`<span>${t("graph.below", {n: told.length - shown.length})}</span>`}</p>
  </section>`;
}
