/** What is no chart: tables, the reliability diagram, the board, the log. */

import { colour, make, percent, short } from "./dashboard_charts.js";

const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

function table(head, rows, caption) {
  return make("div.scroll", { tabindex: "0" }, make("table", {},
    caption ? make("caption", {}, caption) : null,
    make("thead", {}, make("tr", {}, head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, at) =>
      at ? make("td", {}, cell) : make("th", { scope: "row" }, cell)))))));
}

function named(page, run, element) {
  return page.runs.length > 1 ? make("section", {}, make("h4", {}, run.id), element) : element;
}

function nothing(page, how) {
  return make("p.empty", {}, page.t("empty", { how }));
}

const rated = ({ mean, low, high }) => ({ rate: percent(mean), low: percent(low), high: percent(high) });

/** The measured strength, once per run. */
export function strength(page) {
  const { t } = page;
  return page.runs.map((run) => {
    const { finals, best } = run.about;
    const lines = (finals || []).filter((row) => row && row.winrate).map((row) =>
      make("li", {}, t("finals.row", { agent: row.agent, opponent: row.opponent, games: row.games,
        even: percent(row.even), ...rated(row.winrate) })));
    if (lines.length) return named(page, run, make("div", {}, make("h4", {}, t("finals")), make("ul", {}, lines)));
    return best ? named(page, run, make("p", {}, t("best", rated(best)))) : null;
  }).filter(Boolean);
}

/** What was said against what happened, a dot per bin, its size by the number of decisions. */
export function reliability(page, panel) {
  const { t } = page;
  const found = page.runs.flatMap((run, place) => Object.entries(run.about.reliability || {})
    .map(([what, bins]) => ({ run, what, bins, place })));
  if (!found.length) return [nothing(page, panel.missing)];
  const size = 260, edge = 34, inner = size - 2 * edge;
  const at = (value) => edge + value * inner;
  const up = (value) => size - edge - value * inner;
  const svg = draw("svg", { viewBox: `0 0 ${size} ${size}`, class: "diagram", role: "img", "aria-label": t("reliability") });
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(draw("path", { d: `M${at(tick)} ${up(0)}V${up(1)}M${at(0)} ${up(tick)}H${at(1)}`, class: "grid" }),
      draw("text", { x: at(tick), y: size - edge + 14, class: "mid" }, percent(tick)),
      draw("text", { x: edge - 4, y: up(tick) + 4, class: "end" }, percent(tick)));
  }
  svg.append(draw("path", { d: `M${at(0)} ${up(0)}L${at(1)} ${up(1)}`, class: "even" }),
    draw("text", { x: size / 2, y: size - 4, class: "mid" }, t("reliability.said")),
    draw("text", { x: 10, y: size / 2, class: "mid", transform: `rotate(-90 10 ${size / 2})` }, t("reliability.happened")));
  const most = Math.max(...found.flatMap(({ bins }) => bins.map((bin) => bin.count)), 1);
  for (const { bins, place, what, run } of found) {
    const ink = colour(place);
    svg.append(draw("path", { class: "curve", stroke: ink, d: "M" + bins.map((b) => `${at(b.said)} ${up(b.happened)}`).join("L") }));
    for (const bin of bins) {
      svg.append(draw("circle", { cx: at(bin.said), cy: up(bin.happened), fill: ink, r: 2 + 6 * Math.sqrt(bin.count / most) },
        draw("title", {}, `${run.id} ${what}: ${percent(bin.said)} → ${percent(bin.happened)} (${short(bin.count)})`)));
    }
  }
  return [make("figure.chart", { "data-testid": "reliability" }, make("figcaption", {}, make("h3", {}, t("reliability"))), svg)];
}

const ordinal = (t, place) => t(`place.${place}`, {}, t("place.n", { n: place }));

export async function placements(page, panel) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const found = await page.ask(run, "evaluation");
    for (const meeting of found.meetings) {
      const places = meeting.rows[0].places.map((_, at) => ordinal(t, at + 1));
      const rows = meeting.rows.map((row) => [row.agent, row.seat === null ? t("places.all") : String(row.seat),
        String(row.games), ...row.places.map(percent), short(row.mean)]);
      parts.push(named(page, run, table([t("places.agent"), t("places.seat"), t("places.games"), ...places, t("places.mean")],
        rows, t("places", { file: found.file, games: meeting.games }))));
    }
  }
  return parts.length ? parts : [nothing(page, panel.missing)];
}

/** How often the row wins against the column; a click shows games of the two. */
export async function matrix(page, panel) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const { payoff } = await page.ask(run, "league");
    if (!payoff.columns.length) continue;
    const rows = payoff.rows.map((name, i) => [name, ...payoff.columns.map((other, j) => {
      const rate = payoff.rate[i][j];
      if (rate === null || rate === undefined) return "";
      const games = payoff.n[i] && payoff.n[i][j];
      const cell = make("button.cell", { type: "button", title: t("matrix.watch", { name: other }),
        onclick: () => page.watch(run, other) }, percent(rate),
        games ? make("small", {}, t("matrix.games", { n: short(games) })) : null);
      cell.style.setProperty("--share", String(rate));
      return cell;
    })]);
    parts.push(named(page, run, table(["", ...payoff.columns], rows, t("matrix"))));
  }
  return parts.length ? parts : [nothing(page, panel.missing)];
}

export async function lineage(page, panel) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const { lineage: found } = await page.ask(run, "league");
    const fitness = Object.entries(found.fitness);
    if (!fitness.length && !found.copies.length) continue;
    const rows = found.copies.map((copy) => [String(copy.step ?? ""), String(copy.member), String(copy.parent ?? ""),
      Object.entries(copy.changed).map(([key, value]) => `${key}: ${Array.isArray(value) ? value.map(short).join(" → ") : value}`).join(", ")]);
    parts.push(named(page, run, make("div", {},
      tree(fitness.map(([name]) => name), found.copies, t),
      table([t("lineage.member"), t("lineage.fitness")], fitness.map(([name, value]) => [name, short(value)])),
      table([t("lineage.step"), t("lineage.member"), t("lineage.parent"), t("lineage.changed")], rows, t("lineage")))));
  }
  return parts.length ? parts : [nothing(page, panel.missing)];
}

/** One line per member over the updates; an arrow where one took over another's weights. */
function tree(names, copies, t) {
  const members = Math.max(names.length, ...copies.map((c) => Math.max(c.member, c.parent ?? 0) + 1), 1);
  const last = Math.max(...copies.map((c) => c.step || 0), 1);
  const width = 380, row = 26, left = 64;
  const x = (step) => left + ((width - left - 20) * step) / last;
  const y = (member) => 18 + row * member;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${18 + row * members}`, class: "tree", role: "img", "aria-label": t("lineage") });
  for (let member = 0; member < members; member++) {
    svg.append(draw("text", { x: 4, y: y(member) + 4 }, `${t("lineage.member")} ${member}`),
      draw("path", { d: `M${left} ${y(member)}H${width - 10}`, class: "curve", stroke: colour(member) }));
  }
  for (const copy of copies) {
    if (copy.parent === null) continue;
    svg.append(draw("path", { d: `M${x(copy.step || 0)} ${y(copy.parent)}V${y(copy.member)}`, class: "curve", stroke: colour(copy.parent) }),
      draw("circle", { cx: x(copy.step || 0), cy: y(copy.member), r: 4, fill: colour(copy.parent) },
        draw("title", {}, `${copy.step}: ${copy.parent} → ${copy.member}`)));
  }
  return svg;
}

export async function ladder(page, panel) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const found = (await page.ask(run, "league")).ladder;
    if (!found.length) continue;
    parts.push(named(page, run, table([t("lineage.step"), t("ladder.was"), t("ladder.stage"), t("ladder.why")],
      found.map((rung) => [String(rung.step ?? ""), rung.was, rung.stage, rung.why]), t("ladder"))));
  }
  return parts.length ? parts : [nothing(page, panel.missing)];
}

export async function log(page) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const { rows } = await page.ask(run, "log");
    const lines = rows.slice(-200).reverse().map(({ t: time, event, ...rest }) => [
      typeof time === "number" ? new Date(1000 * time).toLocaleString(page.language) : "",
      String(event ?? ""), Object.entries(rest).map(([key, value]) =>
        `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`).join("  ").slice(0, 400)]);
    parts.push(named(page, run, lines.length
      ? table([t("log.time"), t("log.event"), t("log.text")], lines) : make("p.empty", {}, t("log.none"))));
  }
  return parts;
}

export async function config(page) {
  const { t } = page;
  const parts = [];
  for (const run of page.runs) {
    const { differ, note } = await page.ask(run, "settings");
    const text = (value) => (value === null || value === undefined ? t("config.unknown") : JSON.stringify(value));
    const rows = Object.entries(differ).map(([key, [before, here]]) => [key, text(before), JSON.stringify(here)]);
    parts.push(named(page, run, make("div", {}, note ? make("p.note", {}, note) : null, rows.length
      ? table([t("config.key"), t("config.default"), t("config.here")], rows) : make("p.empty", {}, t("config.none")))));
  }
  return parts;
}

/** The recorded games of the first run: one picture per move, drawn by the server. */
export class Board {
  constructor(page, panel) {
    Object.assign(this, { page, panel, games: [], id: null, told: null, ply: 0, timer: null, follow: true });
    this.element = make("div.board", { "data-testid": "board" });
  }

  async refresh() {
    const run = this.page.runs[0];
    if (!run) return;
    const { games } = await this.page.ask(run, "games");
    const same = this.run === run && JSON.stringify(games) === JSON.stringify(this.games);
    if (same && this.language === this.page.language) return;
    Object.assign(this, { run, games, language: this.page.language });
    if (!games.length) {
      this.stop();
      this.element.replaceChildren(nothing(this.page, this.panel.missing));
      return;
    }
    const kept = games.some((game) => game.id === this.id);
    await this.open(kept && !this.follow ? this.id : games[0].id, kept ? this.ply : null);
  }

  async open(id, ply = null) {
    const { t } = this.page;
    const fresh = id !== this.id;
    this.id = id;
    try {
      this.told = await this.page.source.get(`${this.run.path}/games/${id}`);
    } catch (error) {
      this.stop();
      this.element.replaceChildren(this.picker(), make("p.empty", {}, t("board.fails", { why: error.message })));
      return;
    }
    const moves = this.told.moves.length;
    this.image = make("img.position", { alt: "" });
    this.text = make("output", { "data-testid": "board-text" });
    this.slider = make("input", { type: "range", min: "0", max: String(moves), step: String(this.told.every || 1),
      "aria-label": t("board.ply"), "data-testid": "board-ply", oninput: () => this.show(Number(this.slider.value)) });
    const button = (key, action) => make("button", { type: "button", "data-testid": `board-${key}`, onclick: action }, t(`board.${key}`));
    const step = this.told.every || 1;
    this.player = button("play", () => (this.timer ? this.stop() : this.start()));
    this.rate = make("select", { "aria-label": t("board.speed") }, [1, 2, 5].map((n) =>
      make("option", { value: String(n), selected: n === 2 }, t("board.per_s", { n }))));
    this.element.replaceChildren(this.picker(), this.image, this.text, make("div.controls", {},
      button("first", () => this.show(0)), button("back", () => this.show(this.ply - step)), this.player,
      button("next", () => this.show(this.ply + step)), button("last", () => this.show(moves)), this.rate, this.slider));
    this.show(fresh || ply === null ? moves : ply);
  }

  picker() {
    const { t } = this.page;
    const select = make("select", { "aria-label": t("board.game"), "data-testid": "board-game", onchange: () => {
      this.follow = select.value === "";
      this.open(this.follow ? this.games[0].id : select.value);
    } }, make("option", { value: "", selected: this.follow }, t("board.follow")), this.games.map((game) =>
      make("option", { value: game.id, selected: !this.follow && game.id === this.id },
        [game.step === null || game.step === undefined ? game.id : t("board.step", { step: game.step }),
          game.seats.join(" – "), t("board.plies", { n: game.plies })].join(", "))));
    return make("label.picker", {}, t("board.game"), " ", select);
  }

  /** The newest game in which somebody of that name sits. */
  watch(name) {
    const game = this.games.find(({ seats }) => seats.some((seat) => seat === name)) || this.games[0];
    if (!game) return;
    this.follow = false;
    this.open(game.id, 0);
    this.element.scrollIntoView({ block: "nearest" });
  }

  start() {
    const moves = this.told.moves.length;
    if (this.ply >= moves) this.show(0);
    this.player.textContent = this.page.t("board.stop");
    const tick = () => {
      if (this.ply >= moves) return this.stop();
      if (this.image.complete) this.show(this.ply + (this.told.every || 1));
      this.timer = setTimeout(tick, 1000 / Number(this.rate.value));
    };
    this.timer = setTimeout(tick, 200);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.player) this.player.textContent = this.page.t("board.play");
  }

  show(ply) {
    const { t } = this.page;
    const moves = this.told.moves.length;
    this.ply = Math.min(Math.max(ply, 0), moves);
    this.slider.value = String(this.ply);
    const address = this.page.source.picture(`${this.run.path}/games/${this.id}/${this.ply}.svg`);
    if (address) this.image.src = address;
    this.image.alt = t("board.alt", { ply: this.ply, plies: moves });
    const move = this.told.moves[this.ply - 1];
    const words = move ? t("board.move", { seat: this.told.seats[move.seat], text: move.text }) : t("board.start");
    this.text.textContent = `${this.ply}/${moves}  ${words}`;
  }
}
