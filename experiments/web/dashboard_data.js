/** What the page knows of runs: asked from the server, or found inside a saved report. */

/** Points kept of a run before it is asked for again, cut anew. */
const MOST_POINTS = 4000;
const POLL_MS = 2000;
const IDLE_MS = 15000;
const FAILURES = 2;
const AXES = ["step", "env_steps", "t"];

/** Answers by address; a report holds them all, and nothing else is asked. */
export class Source {
  constructor() {
    const inside = document.getElementById("answers");
    this.answers = inside ? JSON.parse(inside.textContent) : null;
  }

  get saved() {
    return this.answers !== null;
  }

  /** The JSON at a path such as "/v1/runs"; throws an Error with one sentence. */
  async get(path, query = "") {
    if (this.saved) {
      if (path in this.answers) return this.answers[path];
      throw new Error(`not in this report: ${path}`);
    }
    const answer = await fetch(address(path) + query, { headers: { Accept: "application/json" } });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(body.detail || `${answer.status} ${answer.statusText}`);
    return body;
  }

  /** Where a picture is, for `img.src`; undefined where a report does not hold it. */
  picture(path) {
    return this.saved ? this.answers[path] : address(path);
  }
}

/** A path as an address beside the page, so that a proxy may put both below a folder. */
export function address(path) {
  return path.slice(1).split("/").map(encodeURIComponent).join("/");
}

/** One run: its series, and what stands once. */
export class Run {
  constructor(source, id) {
    this.source = source;
    this.id = id;
    this.path = `/v1/runs/${id}`;
    this.about = null;
    this.clear({ epoch: "", next: 0, read: 1, x: {}, y: {}, meaning: {} });
  }

  clear(table) {
    this.epoch = table.epoch;
    this.next = table.next;
    this.read = table.read;
    this.x = Object.fromEntries(AXES.map((axis) => [axis, table.x[axis] || []]));
    this.y = table.y;
    this.meaning = table.meaning;
    this.begin = this.x.t.length ? this.x.t[0] : 0;
  }

  get names() {
    return Object.keys(this.y);
  }

  get going() {
    return Boolean(this.about) && ["running", "stalled"].includes(this.about.state);
  }

  async load() {
    const [about, table] = await Promise.all([
      this.source.get(this.path),
      this.source.get(`${this.path}/series`),
    ]);
    this.about = about;
    this.clear(table);
  }

  async summary() {
    this.about = await this.source.get(this.path);
  }

  async series() {
    this.clear(await this.source.get(`${this.path}/series`));
  }

  /** Rows behind the cursor; returns whether anything changed. */
  async poll() {
    const query = `?after=${this.next}&limit=2000&epoch=${encodeURIComponent(this.epoch)}`;
    return this.take(await this.source.get(`${this.path}/events`, query));
  }

  /** Takes an answer of /events. */
  async take(answer) {
    if (answer.reset || answer.more || this.x.step.length + answer.rows.length > MOST_POINTS) {
      await this.series();
      return true;
    }
    this.epoch = answer.epoch;
    for (const row of answer.rows) this.add(row);
    this.next = answer.next;
    return answer.rows.length > 0;
  }

  add(row) {
    if (row.seq <= this.next) return;
    const length = this.x.step.length;
    for (const axis of AXES) this.x[axis].push(row[axis] ?? 0);
    for (const [name, value] of Object.entries(row)) {
      if (AXES.includes(name) || name === "seq" || typeof value !== "number") continue;
      if (!(name in this.y)) this.y[name] = new Array(length).fill(null);
      this.y[name].push(value);
    }
    for (const values of Object.values(this.y)) if (values.length <= length) values.push(null);
  }
}

/**
 * Keeps runs up to date and calls `told(run)` after every change, `state(word)` when the way in
 * which news come changes. The first run is streamed where that works: a browser opens few
 * connections to one host, and the others poll.
 */
export class Feed {
  constructor(source, told, state) {
    Object.assign(this, { source, told, state, runs: [], stream: null, failures: 0, timers: [] });
  }

  watch(runs) {
    this.stop();
    this.runs = runs;
    if (this.source.saved) return this.state("file");
    this.schedule();
  }

  stop() {
    this.timers.forEach(clearTimeout);
    this.timers = [];
    if (this.stream) this.stream.close();
    this.stream = null;
  }

  schedule() {
    const [first, ...others] = this.runs;
    if (!first) return;
    const fit = first.going && first.read >= 1 && this.failures < FAILURES;
    if (fit && "EventSource" in window) this.open(first);
    else this.again(first, true);
    others.forEach((run) => this.again(run, true));
    this.runs.forEach((run) => this.again(run, false));
    this.say();
  }

  say(lost = false) {
    const going = this.runs.some((run) => run.going);
    this.state(lost ? "lost" : this.stream ? "stream" : going ? "poll" : "still");
  }

  /** Rows (`rows`) or the summary of a run, again and again. */
  again(run, rows) {
    const wait = () => (run.going || run.read < 1 ? (rows ? POLL_MS : 2.5 * POLL_MS) : IDLE_MS);
    const look = async () => {
      if (!this.runs.includes(run) || (rows && this.stream && run === this.runs[0])) return;
      try {
        if (!document.hidden) {
          const [before, read] = [run.about.state, run.read];
          if (!rows) await run.summary();
          else if (run.read < 1) await run.series();
          const news = !rows || read < 1 || (await run.poll());
          if (news && this.runs.includes(run)) this.told(run, !rows);
          if (before !== run.about.state || (read < 1 && run.read >= 1)) {
            return this.watch(this.runs);
          }
          this.say();
        }
      } catch {
        this.say(true);
      }
      this.timers.push(setTimeout(look, wait()));
    };
    this.timers.push(setTimeout(look, run.read < 1 ? 500 : wait()));
  }

  open(run) {
    const query = `?after=${run.next}&epoch=${encodeURIComponent(run.epoch)}`;
    const stream = new EventSource(address(`${run.path}/stream`) + query);
    this.stream = stream;
    stream.addEventListener("rows", async (event) => {
      this.failures = 0;
      if (await run.take(JSON.parse(event.data))) this.told(run, false);
    });
    stream.onerror = () => {
      if (this.stream !== stream) return;
      this.failures += 1;
      stream.close();
      this.stream = null;
      this.timers.push(setTimeout(() => this.watch(this.runs), POLL_MS));
    };
  }
}
