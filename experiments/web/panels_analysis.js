/** What a model thinks: asked for, shown, cancelled. Nothing is computed before it is asked for. */

import {html, useEffect, useMemo, useState} from "./vendor/htm/standalone.module.js";
import * as api from "./api.js";
import {Graph} from "./graph.js";
import {problemText} from "./problem_text.js";
import {Tree} from "./tree.js";
import {breakable, signed} from "./panels.js";

const HEATS = ["off", "policy", "visits", "q"];
const share = (x) => (x === null ? "–" : `${(100 * x).toFixed(x < 0.0995 ? 1 : 0)} %`);
const count = (x) => (Number.isInteger(x) ? String(x) : x.toFixed(1));

/**
 * The heat of the board: {kind, values: {action: number}, low, high}, or null. Where nothing was
 * searched there are no visits, and the policy stands for them, under its own name.
 */
export function heatOf(view, wanted) {
  const found = view.analysis;
  if (!found || wanted === "off") return null;
  const actions = new Map(view.legal.map(({action, text}) => [text, action]));
  const total = found.moves.reduce((sum, row) => sum + row[2], 0);
  const kind = wanted === "visits" && !total ? "policy" : wanted;
  const column = {policy: 1, visits: 2, q: 3}[kind];
  const values = {};
  for (const row of found.moves) {
    const action = actions.get(row[0]);
    const value = kind === "visits" ? row[2] / total : row[column];
    if (action !== undefined && value !== null && (kind === "q" || value > 0)) values[action] = value;
  }
  const all = Object.values(values);
  if (!all.length) return null;
  return kind === "q" ? {kind, values, low: -1, high: 1} : {kind, values, low: 0, high: Math.max(...all)};
}

export function Analysis(props) {
  const {view, names, shown, asked, onAsk, analysable, onHere, onGame, onCancel, heat, onHeat, onPick, onPlay, t} = props;
  const models = useAdvisers(view);
  const job = view.job;
  const running = Boolean(job && job.state === "running");
  const change = (changes) => onAsk({...asked, ...changes});
  const found = view.analysis;

  if (models && !models.length) {
    return html`<section class="panel" data-testid="analysis"><h2>${t("analysis.title")}</h2><p class="dim">${t("analysis.none")}</p></section>`;
  }
  return html`<section class="panel" data-testid="analysis">
      <header><h2>${t("analysis.title")}</h2>${!job && !found && html`<span class="small dim">${t("analysis.off")}</span>`}</header>
      <div class="row">
        <label class="small grow">${t("analysis.model")} <select data-testid="analysis-model" value=${asked.model} onChange=${(event) => change({model: event.target.value})}>
          ${(models || []).map((name, i) => html`<option key=${name} value=${i ? name : ""}>${name}</option>`)}</select></label>
        <label class="small">${t("analysis.simulations")} <input type="number" data-testid="analysis-simulations" min="1" max="4096" size="6" placeholder=${t("new.default")}
          value=${asked.simulations} disabled=${asked.network} onInput=${(event) => change({simulations: event.target.value})} /></label>
        <label class="small"><input type="checkbox" checked=${asked.network} onChange=${(event) => change({network: event.target.checked})} /> ${t("analysis.network")}</label>
      </div>
      <div class="row">
        <button type="button" class="main" data-testid="analyse-here" disabled=${running || !analysable} onClick=${onHere}>${t("analysis.here")}</button>
        <button type="button" data-testid="analyse" disabled=${running} onClick=${onGame}>${t("analysis.game")}</button>
        ${running && html`<button type="button" data-testid="cancel" onClick=${onCancel}>${t("analysis.cancel")}</button>`}
        <label class="small"><input type="checkbox" data-testid="analysis-auto" checked=${asked.auto} onChange=${(event) => change({auto: event.target.checked})} /> ${t("analysis.auto")}</label>
      </div>
      ${view.hides && !view.open && html`<p class="small dim">${t("analysis.own")}</p>`}
      ${job && html`<div data-testid="analysis-job" data-state=${job.state}>
        ${running && html`<progress max=${job.total} value=${job.done}></progress>`}
        <p class=${`small ${job.state === "failed" ? "error" : "dim"}`} role="status">${jobText(job, t)}</p></div>`}
      <fieldset class="choice" data-testid="heat"><legend>${t("heat.title")}</legend>
        ${HEATS.map((kind) => html`<label key=${kind}><input type="radio" name="heat" value=${kind} checked=${heat === kind} data-testid=${`heat-${kind}`}
          onChange=${() => onHeat(kind)} /> ${t(kind === "off" ? "heat.off" : `heat.short.${kind}`)}</label>`)}</fieldset>
      ${found && html`<${Candidates} view=${view} names=${names} onPlay=${onPlay} t=${t} />`}
    </section>
    <section class="panel"><details open><summary>${t("graph.title")}</summary>
      <${Graph} points=${view.values} names=${names} at=${shown} onPick=${onPick} t=${t} /></details></section>
    ${found && found.tree && html`<section class="panel"><details><summary data-testid="tree-open">${t("tree.title")}</summary>
      <${Tree} tree=${found.tree} names=${names} t=${t} /></details></section>`}`;
}

function jobText(job, t) {
  const counts = {done: job.done, total: job.total};
  if (job.state === "failed") return t("analysis.failed", {detail: problemText({code: job.code, message: job.error}, t)});
  if (job.state === "cancelled") return t("analysis.cancelled", counts);
  return t("analysis.progress", counts);
}

/** Names of the models that can analyse this game, the default one first; null while unknown. */
function useAdvisers(view) {
  const [models, setModels] = useState(null);
  useEffect(() => {
    let wanted = true;
    api.check({game: view.game, options: view.rules}).then(
      ({who}) => wanted && setModels(who.filter(({kind}) => kind !== "bot").map(({name}) => name)),
      () => wanted && setModels([]),
    );
    return () => {
      wanted = false;
    };
  }, [view.id]);
  return models;
}

/** One row per candidate: prior, visits, share, Q per side, and the line behind it. */
function Candidates({view, names, onPlay, t}) {
  const found = view.analysis;
  const sides = useMemo(() => {
    const first = new Map();
    view.teams.forEach((team, seat) => first.has(team) || first.set(team, seat));
    const all = [...first].map(([team, seat]) => ({seat, name: view.teams.flatMap((other, s) => (other === team ? [names[s]] : [])).join(", ")}));
    return all.filter(({seat}) => found.candidates.some(({q}) => q[seat] !== null)); // a network alone knows none
  }, [view.teams, names, found]);
  const searched = found.simulations > 0;
  const [all, setAll] = useState(false);
  const rows = all ? found.candidates : found.candidates.slice(0, 5);
  const others = found.count - rows.length;
  const played = found.played;
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${t("candidates.title")}>
      <table class="candidates" data-testid="candidates"><caption class="small dim">
        ${t(searched ? "analysis.found" : "analysis.found_network", {model: found.model, n: found.simulations, ms: found.elapsed_ms})}</caption>
        <thead><tr><th scope="col">${t("candidates.move")}</th><th scope="col">${t("candidates.prior")}</th><th scope="col">${t("candidates.visits")}</th>
          <th scope="col">${t("candidates.share")}</th>${sides.map(({name}) => html`<th scope="col" class="side">${t("candidates.q", {name: breakable(name)})}</th>`)}
          <th scope="col">${t("candidates.line")}</th></tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${row.action} class=${`${row.text === found.move ? "best" : ""} ${played && played.text === row.text ? "played" : ""}`}>
          <td>${onPlay ? html`<button type="button" title=${t("move.play")} onClick=${() => onPlay(row.text)}>${row.text}</button>` : row.text}</td>
          <td>${share(row.prior)}</td><td>${searched ? count(row.visits) : "–"}</td><td>${searched ? share(row.share) : "–"}</td>
          ${sides.map(({seat}) => html`<td>${signed(row.q[seat])}</td>`)}
          <td class="line">${row.line.slice(1).join(" · ")}</td></tr>`)}</tbody>
      </table></div>
    ${others > 0 && html`<p class="small dim">${t("candidates.others", {n: others})}
      ${found.candidates.length > 5 && html` <button type="button" data-testid="candidates-all" aria-pressed=${String(all)} onClick=${() => setAll(!all)}>+</button>`}</p>`}
    ${played && html`<p class="small">${played.loss === null
      ? t("candidates.played", {text: played.text})
      : t("candidates.played_loss", {text: played.text, loss: played.loss.toFixed(2)})}</p>`}`;
}
