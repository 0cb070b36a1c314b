/** The dashboard page. It shows what the server says and computes no statistic of its own. */

import { TEXTS, translator } from "./dashboard_texts.js";
import { Feed, Run, Source, address } from "./dashboard_data.js";
import { Chart, colour, drawn, make, percent, short, span } from "./dashboard_charts.js";
import {
  Board, config, ladder, lineage, log, matrix, placements, reliability, strength,
} from "./dashboard_tables.js";

const MOST_RUNS = 6;
const SIGNS = { ok: "●", warn: "▲", bad: "■" };
const STATES = { running: "▶", stalled: "…", finished: "✓", interrupted: "❚❚", failed: "✕", crashed: "✕", empty: "○" };
const EXTRAS = { reliability, placements, matrix, lineage, ladder, log, config };

/** A choice that is kept in this browser; pages without storage forget it. */
function kept(name, otherwise) {
  try {
    return localStorage.getItem(`jaxgames.${name}`) || otherwise;
  } catch {
    return otherwise;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`jaxgames.${name}`, value);
  } catch {
    /* private windows */
  }
}

class Page {
  constructor() {
    this.source = new Source();
    this.runs = [];
    this.listed = [];
    this.axis = kept("axis", "step");
    this.logX = kept("logx", "") === "yes";
    this.answers = new Map();
    this.feed = new Feed(this.source, (run, whole) => this.changed(run, whole), (word) => this.state(word));
    this.speak(kept("language", navigator.language.startsWith("zh") ? "zh" : "en"));
    this.dress(kept("theme", "auto"));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    window.addEventListener("hashchange", () => this.choose(this.hash()));
  }

  speak(language) {
    this.language = language in TEXTS ? language : "en";
    this.t = translator(this.language);
    document.documentElement.lang = this.language;
    keep("language", this.language);
  }

  dress(theme) {
    this.theme = theme;
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    keep("theme", theme);
  }

  /** Ids after "#runs=", if any. */
  hash() {
    const found = /^#runs=(.+)$/.exec(location.hash);
    return found ? found[1].split(",").map(decodeURIComponent) : [];
  }

  /** Swaps the code of an address such as "…#code=X", good once, for a cookie. */
  async enter() {
    const found = /^#code=(.+)$/.exec(location.hash);
    if (!found || this.source.saved) return;
    history.replaceState(null, "", location.pathname);
    await fetch(address("/v1/session"), { method: "POST", headers: { Authorization: `Bearer ${found[1]}` } });
  }

  async begin() {
    try {
      await this.enter();
      const { runs, chosen, panels } = await this.source.get("/v1/runs");
      Object.assign(this, { listed: runs, panels });
      this.layout();
      const known = new Set(runs.map((run) => run.id));
      const wanted = [this.hash(), chosen, runs.map((run) => run.id).slice(0, 1)]
        .map((ids) => ids.filter((id) => known.has(id)))
        .find((ids) => ids.length);
      await this.choose(wanted || []);
    } catch (error) {
      document.getElementById("main").replaceChildren(make("p.empty", { role: "alert" }, error.message));
    }
  }

  async choose(ids) {
    const runs = ids.slice(0, MOST_RUNS).map((id) => this.runs.find((run) => run.id === id) || new Run(this.source, id));
    const loaded = await Promise.allSettled(runs.map((run) => (run.about ? null : run.load())));
    loaded.forEach((one) => one.status === "rejected" && this.say(one.reason.message));
    this.runs = runs.filter((run) => run.about);
    this.answers.clear();
    if (!this.source.saved) history.replaceState(null, "", `#runs=${this.runs.map((run) => encodeURIComponent(run.id)).join(",")}`);
    this.redraw();
    this.feed.watch(this.runs);
  }

  say(text) {
    document.getElementById("said").textContent = text;
  }

  /** An answer about a run, asked once until the run changes. */
  ask(run, what) {
    const path = `${run.path}/${what}`;
    if (!this.answers.has(path)) this.answers.set(path, this.source.get(path));
    return this.answers.get(path);
  }

  state(word) {
    this.word = word;
    const place = document.getElementById("feed");
    if (!place) return;
    const reading = this.runs.find((run) => run.read < 1);
    place.textContent = reading
      ? this.t("feed.reading", { share: Math.floor(100 * reading.read) }) : this.t(`feed.${word}`);
    place.dataset.word = reading ? "reading" : word;
  }

  changed(run, whole) {
    if (whole) {
      for (const path of [...this.answers.keys()]) if (path.startsWith(`${run.path}/`)) this.answers.delete(path);
      this.heads();
      this.extras();
    } else {
      this.charts.forEach((chart) => chart.change());
      this.others();
    }
    this.state(this.word);
  }

  redraw() {
    this.bar();
    this.heads();
    this.words();
    this.charts.forEach((chart) => chart.change());
    this.others();
    this.extras();
    if (this.word) this.state(this.word);
  }

  // ---- what does not change ----

  layout() {
    this.charts = [];
    this.places = new Map();
    const sections = this.panels.map((panel) => {
      const charts = panel.charts.map((about) => new Chart(about, this));
      this.charts.push(...charts);
      const extra = make("div.extra");
      const title = make("h2", { id: `panel-${panel.id}` });
      this.places.set(panel.id, { panel, title, extra });
      if (panel.extra === "board") {
        this.board = new Board(this, panel);
        extra.append(this.board.element);
      }
      return make("section.panel", { "aria-labelledby": title.id, "data-testid": `panel-${panel.id}` },
        title, extra, make("div.charts", {}, charts.map((chart) => chart.element)));
    });
    this.rest = make("div.charts");
    this.restCharts = new Map();
    this.restTitle = make("summary");
    const rest = make("details.panel", { "data-testid": "panel-other", ontoggle: () => this.others() }, this.restTitle, this.rest);
    this.headPlace = make("div.heads");
    document.getElementById("main").replaceChildren(this.headPlace, ...sections, rest);
  }

  /** Metrics that no chart shows, each in a chart of its own. */
  others() {
    const all = [...new Set(this.runs.flatMap((run) => run.names))];
    const shown = new Set(this.panels.flatMap((panel) => panel.charts.flatMap((chart) => drawn(chart.names, all))));
    const names = drawn(["*"], all).filter((name) => !shown.has(name) && name !== "seq");
    this.rest.parentElement.hidden = !names.length;
    this.restTitle.textContent = `${this.t("panel.other")} (${names.length})`;
    for (const name of names) {
      if (this.restCharts.has(name)) continue;
      const chart = new Chart({ id: name, title: name, names: [name], log: false, share: false, missing: "" }, this);
      this.restCharts.set(name, chart);
      this.rest.append(chart.element);
    }
    for (const [name, chart] of this.restCharts) {
      chart.element.hidden = !names.includes(name);
      chart.change();
    }
  }

  words() {
    document.title = `${this.runs.map((run) => run.id).join(", ") || "jaxgames"} – ${this.t("app")}`;
    for (const { panel, title } of this.places.values()) title.textContent = this.t(`panel.${panel.id}`, {}, panel.title);
  }

  // ---- the bar ----

  bar() {
    const { t } = this;
    const choice = (key, values, now, chosen) => make("label", {}, t(key), " ",
      make("select", { "data-testid": key, onchange: (event) => chosen(event.target.value) },
        values.map(([value, text]) => make("option", { value, selected: value === now }, text))));
    const picker = make("details.runs", { "data-testid": "runs" },
      make("summary", {}, `${t("runs")}: ${this.runs.length}/${this.listed.length}`),
      make("fieldset", {}, make("legend", {}, t("runs.choose")), this.listed.map((run) => this.choice(run))));
    if (this.picking) picker.open = true;
    picker.addEventListener("toggle", () => { this.picking = picker.open; });
    const tools = this.source.saved ? [] : this.runs.slice(0, 1).map((run) => make("a.button", {
      href: address(`${run.path}/report`), title: t("report.title"), download: `${run.id}.html`, "data-testid": "report",
    }, t("report")));
    document.getElementById("top").replaceChildren(
      make("a.skip", { href: "#main", onclick: (event) => { event.preventDefault(); document.getElementById("main").focus(); } }, t("skip")),
      make("h1", {}, "jaxgames ", make("small", {}, t("app"))),
      make("span", { id: "feed", role: "status", "data-testid": "feed" }),
      picker,
      make("div.settings", {},
        choice("x", [["step", t("x.step")], ["env_steps", t("x.env_steps")], ["wall", t("x.wall")]], this.axis, (axis) => {
          this.axis = axis;
          keep("axis", axis);
          this.redraw();
        }),
        make("label", {}, make("input", { type: "checkbox", checked: this.logX, "data-testid": "x-log", onchange: (event) => {
          this.logX = event.target.checked;
          keep("logx", this.logX ? "yes" : "");
          this.redraw();
        } }), t("x.log")),
        choice("theme", ["auto", "light", "dark"].map((value) => [value, t(`theme.${value}`)]), this.theme, (theme) => {
          this.dress(theme);
          this.redraw();
        }),
        choice("language", [["en", "English"], ["zh", "中文"]], this.language, (language) => {
          this.speak(language);
          this.redraw();
        }),
        tools));
  }

  choice(run) {
    const chosen = this.runs.some(({ id }) => id === run.id);
    const box = make("input", { type: "checkbox", checked: chosen, "data-testid": `run-${run.id}`, onchange: () => {
      const ids = this.runs.map(({ id }) => id);
      if (!box.checked) return this.choose(ids.filter((id) => id !== run.id));
      if (ids.length >= MOST_RUNS) {
        box.checked = false;
        return this.say(this.t("runs.most"));
      }
      return this.choose([...ids, run.id]);
    } });
    return make("label", {}, box, ` ${run.id} `, this.badge(run.state));
  }

  badge(state) {
    return make(`span.badge.${state}`, {}, `${STATES[state] || "?"} ${this.t(`state.${state}`)}`);
  }

  // ---- one head per run ----

  heads() {
    const open = new Set([...this.headPlace.querySelectorAll("details[open]")].map((one) => one.dataset.run));
    const heads = this.runs.map((run, place) => this.head(run, place, open.has(run.id)));
    this.headPlace.replaceChildren(...(heads.length ? heads : [make("p.empty", {}, this.t("runs.none"))]));
  }

  head(run, place, open) {
    const { t } = this;
    const about = run.about;
    const facts = [
      ["head.step", short(about.step)],
      ["head.moves", short(about.env_steps)],
      ["head.speed", short(about.speed["env/steps_per_s"])],
      ["head.games", short(about.speed["selfplay/games_per_s"])],
      ["head.eta", about.eta_s === null ? null : `${span(about.eta_s)} (${percent(about.share)})`],
      ["head.minutes", about.minutes === null ? null : span(60 * about.minutes)],
      ["head.stage", about.stage],
      ["head.preset", about.preset],
      ["head.seed", about.seed === null ? null : String(about.seed)],
      ["head.commit", about.commit && about.commit.slice(0, 10) + (about.commit.endsWith("+") ? "+" : "")],
      ["head.updated", about.updated === null ? null : t("head.ago", { time: span(about.now - about.updated) })],
    ].filter(([, value]) => value !== null && value !== undefined && value !== "");
    const mark = make("span.mark", { "aria-hidden": "true" });
    mark.style.background = this.runs.length > 1 ? colour(place) : "transparent";
    return make("article.head", { "data-testid": `head-${run.id}` },
      make("h2", {}, mark, run.id, " ", this.badge(about.state)),
      about.message ? make("p.note", {}, about.message) : null,
      about.torn ? make("p.note", {}, t("head.torn", { n: about.torn })) : null,
      make("dl", {}, facts.map(([key, value]) => make("div", {}, make("dt", {}, t(key)), make("dd", {}, value)))),
      this.lights(run, open));
  }

  lights(run, open) {
    const { t } = this;
    const { lights, silent } = run.about;
    if (!lights.length) return make("p.empty", {}, t("lights.none"));
    const details = make("details.lights", { open, "data-run": run.id, "data-testid": `lights-${run.id}` },
      make("summary", {}, `${t("lights")}: `, lights.flatMap((light) =>
        [make(`span.light.${light.level}`, { title: light.text }, `${SIGNS[light.level] || "?"} ${t(`light.${light.name}`)}`), " "])),
      make("ul", {}, lights.map((light) => make(`li.${light.level}`, {},
        make("b", {}, `${SIGNS[light.level] || "?"} ${t(`light.${light.name}`)} (${t(`level.${light.level}`)})`), ` ${light.text}. `,
        make("small", {}, `${t("lights.rule", { rule: light.says })}. ${t("lights.look", { name: light.look })}`)))),
      silent.length ? make("p.note", {}, t("lights.silent", { names: silent.map((name) => t(`light.${name}`)).join(", ") })) : null);
    return details;
  }

  // ---- what is no chart ----

  async extras() {
    const turn = (this.turn = (this.turn || 0) + 1);
    for (const { panel, extra } of this.places.values()) {
      try {
        if (panel.id === "strength") extra.replaceChildren(...strength(this));
        if (panel.extra === "board") await this.board.refresh();
        if (!(panel.extra in EXTRAS)) continue;
        const parts = await EXTRAS[panel.extra](this, panel);
        if (turn !== this.turn) return;
        extra.replaceChildren(...parts);
      } catch (error) {
        extra.replaceChildren(make("p.empty", { role: "alert" }, error.message));
      }
    }
  }

  watch(run, name) {
    if (this.runs[0] === run) this.board.watch(name);
  }
}

new Page().begin();
