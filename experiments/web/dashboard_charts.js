/** Charts: lines over updates, moves or hours, of one run or of several laid over each other. */

import { inks } from "./ink.js";

const PALETTE = {
  light: ["#1f5fbf", "#c2410c", "#0b7f5c", "#7b3fa6", "#a16207", "#be185d", "#0e7490", "#57534e"],
  dark: ["#6ea8ff", "#ff9b5e", "#45d3a2", "#cf9bf7", "#e3bd4f", "#ff85b5", "#4fd1e8", "#c9c4bc"],
};
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3], [1, 4], [12, 6], [4, 2, 1, 2], [8, 2]];
const HEIGHT = 220;

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return chosen === "dark";
  return window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function colour(index) {
  const palette = PALETTE[isDark() ? "dark" : "light"];
  return palette[index % palette.length];
}

/** An element: `make("p.note", {title: "x", onclick: f}, "text", child)`. Text stays text. */
export function make(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number for people: four digits, thousands as k, M, G. */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e5) {
    const [unit, by] = size >= 1e9 ? ["G", 1e9] : size >= 1e6 ? ["M", 1e6] : ["k", 1e3];
    return `${+(value / by).toPrecision(3)}${unit}`;
  }
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return String(+value.toPrecision(4));
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${+(100 * value).toPrecision(3)} %`;
}

/** Seconds as "3 d 4 h", "2 h 5 min", "40 s". */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.max(Math.round(seconds), 0);
  const at = parts.findIndex(([, size]) => left >= size);
  if (at < 0) return "0 s";
  return parts
    .slice(at, at + 2)
    .map(([unit, size]) => {
      const number = Math.floor(left / size);
      left -= number * size;
      return number ? `${number} ${unit}` : "";
    })
    .join(" ")
    .trim();
}

/** Saves text or a data address under a name. */
export function save(name, data, type) {
  const link = make("a", {
    href: type ? URL.createObjectURL(new Blob([data], { type })) : data,
    download: name,
  });
  document.body.append(link);
  link.click();
  link.remove();
  if (type) setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** The metrics that a chart draws: [{name, low?, high?}], as `panels.drawn` finds them. */
export function drawn(names, all) {
  const known = new Set(all);
  const base = (name) => name.slice(0, name.lastIndexOf("/"));
  const bound = (name) => /\/(low|high)$/.test(name) && known.has(base(name));
  const found = [];
  for (const pattern of names) {
    const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    const end = pattern.endsWith("*");
    const text = parts.join("[^/]+");
    const expression = new RegExp(`^${end ? `${text.slice(0, -5)}.+` : text}$`);
    for (const name of [...all].sort()) {
      if (expression.test(name) && !bound(name) && !found.includes(name)) found.push(name);
    }
  }
  return found;
}

/**
 * What a chart shows: {lines: [{run, name, label, at, dash, role}], data: aligned columns}.
 * Rows in which none of its metrics stands are left out.
 */
export function gather(runs, names, axis) {
  const lines = [];
  const tables = [];
  const several = runs.length > 1;
  runs.forEach((run, place) => {
    const mine = drawn(names, run.names);
    const columns = [];
    mine.forEach((name, index) => {
      const at = several ? place : index;
      const label = several ? `${run.id}: ${name}` : name;
      const about = { run, name, label, at, dash: index };
      columns.push([{ ...about, role: "line" }, run.y[name]]);
      for (const end of ["low", "high"]) {
        const values = run.y[`${name}/${end}`];
        if (values) columns.push([{ ...about, role: end }, values]);
      }
    });
    if (!columns.length) return;
    const x = [];
    const ys = columns.map(() => []);
    const own = run.x[axis === "wall" ? "t" : axis];
    for (let i = 0; i < own.length; i++) {
      if (columns.every(([, values]) => values[i] === null || values[i] === undefined)) continue;
      const value = axis === "wall" ? (own[i] - run.begin) / 3600 : own[i];
      if (x.length && value < x[x.length - 1]) continue;
      x.push(value);
      columns.forEach(([, values], n) => ys[n].push(values[i] ?? null));
    }
    lines.push(...columns.map(([about]) => about));
    tables.push([x, ...ys]);
  });
  const data = tables.length > 1 ? uPlot.join(tables) : tables[0] || [[]];
  return { lines, data };
}

/** Comma-separated values of what a chart shows. */
export function csv(shown, axis) {
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const ends = { line: "", low: "/low", high: "/high" };
  const head = [axis, ...shown.lines.map((line) => line.label + ends[line.role])];
  const rows = [head.map(quote)];
  for (let i = 0; i < shown.data[0].length; i++) {
    rows.push(shown.data.map((column) => (column[i] === null || column[i] === undefined ? "" : column[i])));
  }
  return rows.map((row) => row.join(",")).join("\n") + "\n";
}

/** One chart in its place; `draw` again whenever runs or settings change. */
export class Chart {
  constructor(about, page) {
    this.about = about;
    this.page = page;
    this.log = about.log;
    this.hidden = new Set();
    this.plot = null;
    this.legend = make("ul.legend");
    this.place = make("div.plot");
    this.empty = make("p.empty");
    this.title = make("h3");
    this.tools = make("div.tools");
    this.element = make("figure.chart", { "data-testid": `chart-${about.id}` },
      make("figcaption", {}, this.title, this.tools), this.place, this.legend, this.empty);
    this.seen = false;
    new IntersectionObserver((entries) => {
      this.seen = entries[entries.length - 1].isIntersecting;
      if (this.seen && this.stale) this.draw();
    }, { rootMargin: "300px" }).observe(this.element);
    new ResizeObserver(() => {
      const width = this.place.clientWidth;
      if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    }).observe(this.place);
  }

  /** To be drawn when next in sight. */
  change() {
    this.stale = true;
    if (this.seen) this.draw();
  }

  draw() {
    this.stale = false;
    const { t, axis, logX } = this.page;
    const title = t(`chart.${this.about.id}`, {}, this.about.title);
    const shown = (this.shown = gather(this.page.runs, this.about.names, axis));
    const some = shown.data[0].length > 0;
    this.title.textContent = title;
    this.empty.textContent = some ? "" : t("empty", { how: this.about.missing || "?" });
    this.place.hidden = this.legend.hidden = !some;
    this.tools.replaceChildren(...(some ? this.buttons(title) : []));
    // New points of the same lines only change the data: zoom and legend stay.
    const shape = JSON.stringify([shown.lines.map((l) => [l.label, l.role]), axis, logX, this.log,
      isDark(), t("run"), this.negative(shown)]);
    if (this.plot && some && shape === this.shape) {
      this.plot.setData(shown.data, !this.zoomed());
      this.values(null);
      return;
    }
    if (this.plot) this.plot.destroy();
    this.plot = null;
    this.shape = shape;
    if (some) this.build(shown, axis, logX);
  }

  zoomed() {
    const { min, max } = this.plot.scales.x;
    const x = this.plot.data[0];
    return x.length > 1 && (min > x[0] || max < x[x.length - 1]);
  }

  negative(shown) {
    return shown.data.slice(1).some((column) => column.some((v) => v !== null && v <= 0));
  }

  /** Where an axis that holds 0 or less turns from linear to logarithmic. */
  near0(shown) {
    let least = 1e-2;
    for (const column of shown.data.slice(1)) {
      for (const v of column) if (v) least = Math.min(least, Math.abs(v));
    }
    return Math.max(least, 1e-6);
  }

  build(shown, axis, logX) {
    const { grid: lines, dim: words } = inks("grid", "dim");
    const name = this.page.t(`x.${axis}`);
    const bands = [];
    const series = [{ label: name }];
    shown.lines.forEach((line, index) => {
      const stroke = colour(line.at);
      const plain = line.role === "line";
      series.push({
        label: line.label,
        stroke: plain ? stroke : "transparent",
        width: plain ? 1.75 : 0,
        dash: DASHES[line.dash % DASHES.length],
        spanGaps: true,
        show: !this.hidden.has(line.label),
        points: plain ? (this.count(index + 1, shown) <= 60 ? { show: true, size: 5 } : {}) : { show: false },
      });
      const next = shown.lines[index + 1];
      if (line.role === "low" && next && next.role === "high") {
        bands.push({ series: [index + 2, index + 1], fill: `${stroke}33` });
      }
    });
    const axes = { stroke: words, grid: { stroke: lines, width: 1 }, ticks: { stroke: lines, width: 1 } };
    const text = (u, values) => values.map((v) => (v === null ? "" : this.about.share ? percent(v) : short(v)));
    const y = this.log ? (this.negative(shown) ? { distr: 4, asinh: this.near0(shown) } : { distr: 3 }) : { range: this.range() };
    const decades = this.log ? { filter: (u, values) => this.decades(u, values) } : {};
    this.plot = new uPlot({
      width: this.place.clientWidth || 300,
      height: HEIGHT,
      series,
      bands,
      legend: { show: false },
      cursor: { sync: { key: "x" }, drag: { x: true, y: false } },
      scales: { x: { time: false, ...(logX ? { distr: 3 } : {}) }, y },
      axes: [
        { ...axes, values: (u, v) => v.map((n) => (n === null ? "" : short(n))), label: name, labelSize: 18, size: 34 },
        { ...axes, ...decades, grid: { ...axes.grid, ...decades }, values: text, size: 58 },
      ],
      hooks: { setCursor: [(u) => this.values(u.cursor.idx)] },
    }, logX ? this.positive(shown.data) : shown.data, this.place);
    this.plot.root.setAttribute("role", "img");
    this.plot.root.setAttribute("aria-label", `${this.title.textContent}: ${this.about.names.join(", ")}`);
    this.list(shown);
  }

  count(column, shown) {
    return shown.data[column].reduce((number, v) => number + (v === null || v === undefined ? 0 : 1), 0);
  }

  /** The usual margins; a flat curve has some as well, and shares that never left 0 go to 1. */
  range() {
    return (u, least, most) => {
      if (least === null) return [0, 1];
      if (least !== most) return uPlot.rangeNum(least, most, 0.1, true);
      if (this.about.share && least === 0) return [0, 1];
      const by = Math.abs(least) * 0.1 || 1;
      return [least - by, least + by];
    };
  }

  /** Of the marks of a logarithmic axis some six powers of ten, where it has so many. */
  decades(u, values) {
    const power = (v) => Math.round(Math.log10(Math.abs(v)) * 1e6) / 1e6;
    const tens = values.filter((v) => v !== 0 && Number.isInteger(power(v)));
    const every = Math.max(Math.ceil(tens.length / 6), 1);
    if (tens.length < 3) return values;
    const beside0 = values.includes(0) ? Math.min(...tens.map(Math.abs)) : 0; // where no text fits next to that of 0
    const kept = (v) => v === 0 || (Math.abs(v) !== beside0 && Number.isInteger(power(v)) && power(v) % every === 0);
    return values.map((v) => (kept(v) ? v : null));
  }

  /** A logarithmic axis has no place for 0. */
  positive(data) {
    const first = data[0].findIndex((x) => x > 0);
    return first > 0 ? data.map((column) => column.slice(first)) : data;
  }

  list(shown) {
    const items = shown.lines.map((line, index) => {
      if (line.role !== "line") return null;
      const value = make("b");
      const button = make("button.key", {
        type: "button",
        title: line.run.meaning[line.name] || "",
        "aria-pressed": String(!this.hidden.has(line.label)),
        onclick: () => this.toggle(line, button),
      }, this.sample(line), line.label, " ", value);
      return { index: index + 1, line, value, item: make("li", {}, button) };
    });
    this.items = items.filter(Boolean);
    this.legend.replaceChildren(...this.items.map(({ item }) => item));
    this.values(null);
  }

  sample(line) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 24 6");
    svg.setAttribute("class", "sample");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", "M0 3H24");
    path.setAttribute("stroke", colour(line.at));
    path.setAttribute("stroke-width", "3");
    path.setAttribute("stroke-dasharray", DASHES[line.dash % DASHES.length].join(" "));
    svg.append(path);
    return svg;
  }

  toggle(line, button) {
    const show = this.hidden.has(line.label);
    this.hidden[show ? "delete" : "add"](line.label);
    button.setAttribute("aria-pressed", String(show));
    this.shown.lines.forEach((other, index) => {
      if (other.label === line.label) this.plot.setSeries(index + 1, { show });
    });
  }

  /** The values at the cursor, or the last ones, beside the names. */
  values(index) {
    if (!this.items || !this.plot) return;
    for (const { index: column, line, value } of this.items) {
      const data = this.plot.data[column];
      if (!data) continue;
      let at = index ?? data.length - 1;
      while (at >= 0 && (data[at] === null || data[at] === undefined)) at -= 1;
      const show = this.about.share ? percent : short;
      let text = at < 0 ? "–" : show(data[at]);
      const ends = this.shown.lines.slice(column, column + 2).map((l) => l.role);
      if (at >= 0 && ends[0] === "low" && line.role === "line") {
        text += ` [${show(this.plot.data[column + 1][at])}, ${show(this.plot.data[column + 2][at])}]`;
      }
      value.textContent = text;
    }
  }

  buttons(title) {
    const { t } = this.page;
    const log = make("label", {}, make("input", {
      type: "checkbox", checked: this.log, "data-testid": `log-${this.about.id}`,
      onchange: (event) => { this.log = event.target.checked; this.draw(); },
    }), t("chart.log"));
    return [
      log,
      make("button", { type: "button", "data-testid": `csv-${this.about.id}`,
        "aria-label": t("chart.csv", { title }), title: t("chart.csv", { title }),
        onclick: () => save(this.file("csv"), csv(this.shown, this.page.axis), "text/csv") }, t("csv")),
      make("button", { type: "button", "data-testid": `png-${this.about.id}`,
        "aria-label": t("chart.png", { title }), title: t("chart.png", { title }),
        onclick: () => save(this.file("png"), this.picture(title)) }, t("png")),
    ];
  }

  file(end) {
    return `${this.page.runs.map((run) => run.id).join("+")}-${this.about.id}.${end}`;
  }

  /** The chart with its title and legend as a PNG data address. */
  picture(title) {
    const from = this.plot.ctx.canvas;
    const scale = window.devicePixelRatio || 1;
    const { panel, ink } = inks("panel", "ink");
    const row = 18 * scale;
    const canvas = document.createElement("canvas");
    canvas.width = from.width;
    canvas.height = from.height + row * (this.items.length + 2);
    const pen = canvas.getContext("2d");
    pen.fillStyle = panel;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = ink;
    pen.font = `bold ${14 * scale}px sans-serif`;
    pen.fillText(title, row / 2, row);
    pen.drawImage(from, 0, row * 1.5);
    pen.font = `${12 * scale}px sans-serif`;
    this.items.forEach(({ line, value }, index) => {
      const y = from.height + row * (index + 2.2);
      pen.strokeStyle = colour(line.at);
      pen.lineWidth = 3 * scale;
      pen.setLineDash(DASHES[line.dash % DASHES.length].map((d) => d * scale));
      pen.beginPath();
      pen.moveTo(row / 2, y - row / 4);
      pen.lineTo(row * 2, y - row / 4);
      pen.stroke();
      pen.fillText(`${line.label}  ${value.textContent}`, row * 2.5, y);
    });
    return canvas.toDataURL("image/png");
  }
}

