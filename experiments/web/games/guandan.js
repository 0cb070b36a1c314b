/**
 * Guandan: the table, the hand and the plays. Cards are picked by clicking; the plays that hold
 * all of them stay listed, each reading of a wild apart. The list comes from the server
 * (`scene.plays`): nothing is judged here.
 */

import {html, useEffect, useMemo, useState} from "../vendor/htm/standalone.module.js";
import {cardWords, Face, Mini, parse, rankText} from "../cards.js";
import {HeatLegend, shade, valueText} from "../heat.js";
import {nameOf} from "./sequence.js";

const FIRST = 20; // plays shown unasked

/**
 * Moves that a list of plays allows: {action, play, cards, move, first}. A move is as the server
 * takes it; `first` marks the one way that stands for its play where nothing was picked.
 */
export function movesOf(plays, legal) {
  const known = new Map((legal || []).map((entry) => [entry.text, entry]));
  return (plays || []).flatMap((play) => {
    const entry = known.get(play.text) || {};
    const note = plain(entry.note);
    const usual = Math.max(play.ways.findIndex((way) => way && way === note), 0);
    return play.ways.map((way, i) => ({
      action: entry.action,
      play,
      cards: way ? way.split(" ") : [],
      move: way ? `${play.text}: ${way}` : play.text,
      first: i === usual,
    }));
  });
}

/** The cards of a note, "S9 H2 as 9" without what wilds stand for. */
const plain = (note) => (note || "").replace(/ as \w+/g, "");

/** Whether all of `picked` are among `cards`, copies counted. */
function holds(cards, picked) {
  const left = [...cards];
  return picked.every((card) => {
    const at = left.indexOf(card);
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

export default function Board(props) {
  const {scene, legal, heat, candidates, hint, busy, names, t, onPlay} = props;
  const [picked, pick] = usePicked(props);
  const [turn, setTurn] = useState(-1);
  useEffect(() => setTurn(-1), [positionKey(scene)]);
  const moves = useMemo(() => (busy ? [] : movesOf(scene.plays, legal)), [scene, legal, busy]);
  const mine = props.viewer ?? 0;
  const hand = scene.seats[mine];
  const chosen = picked.map((i) => hand.cards[i]).filter(Boolean);
  const hinted = useMemo(() => cardsOf(hint, moves, hand.cards), [hint, moves, hand]);
  const advised = (candidates || []).map(({text}) => text).filter((text) => moves.some((m) => m.play.text === text || m.move === text));

  function play(move) {
    pick([]);
    onPlay(move);
  }

  /** The next candidate's cards, picked; around at the end. */
  function cycle() {
    const next = (turn + 1) % advised.length;
    setTurn(next);
    pick(cardsOf(advised[next], moves, hand.cards) || []);
  }

  const exact = moves.filter((m) => m.cards.length === chosen.length && chosen.length && holds(m.cards, chosen));
  const pass = moves.find((m) => m.play.type === "PASS");
  const common = {scene, names, t};
  return html`<div class="guandan" data-testid="board" onKeyDown=${(event) => event.key === "Escape" && pick([])}>
    <${Header} ...${common} />
    <${Table} ...${common} viewer=${mine} />
    <${Tribute} ...${common} viewer=${props.viewer} />
    <${Hand} ...${common} hand=${hand} picked=${picked} pick=${pick} hinted=${hinted || []} />
    <div class="actions" role="toolbar" aria-label=${t("guandan.actions")}>
      <button type="button" class="main" data-testid="play" disabled=${exact.length !== 1}
        onClick=${() => play(exact[0].move)}>${playWords(exact, chosen, scene, t)}</button>
      ${pass && html`<button type="button" data-testid="pass" onClick=${() => play(pass.move)}>${t("guandan.pass")}</button>`}
      <button type="button" data-testid="clear" disabled=${!picked.length} onClick=${() => pick([])}>${t("guandan.clear")}</button>
      ${advised.length > 0 && html`<button type="button" data-testid="next-candidate" onClick=${cycle}>${t("guandan.next_candidate")}
        ${turn >= 0 && advised[turn] ? ` ${turn + 1}/${advised.length}` : ""}</button>`}
    </div>
    ${moves.length > 0 && html`<${Plays} ...${common} moves=${moves} chosen=${chosen} play=${play} heat=${heat} candidates=${candidates} />`}
    <${HeatLegend} heat=${heat} t=${t} />
    <${History} ...${common} />
  </div>`;
}

/** Differs between positions that follow each other; the same for a position told again. */
const positionKey = ({round, stage, mover, seats}) => [round, stage, mover, ...seats.map(({left}) => left)].join();

/** Places in the hand that were picked, kept by the page if it wants to, else here. */
function usePicked({selection, onSelect, scene}) {
  const [own, setOwn] = useState([]);
  useEffect(() => setOwn([]), [positionKey(scene)]);
  return onSelect ? [Array.isArray(selection) ? selection : [], onSelect] : [own, setOwn];
}

/** Places in the hand of the cards that a move or an action takes; null where there is none. */
function cardsOf(text, moves, hand) {
  if (!text) return null;
  const found = moves.find((m) => m.move === text) || moves.find((m) => m.play.text === text && m.first);
  if (!found) return null;
  const left = hand.map((card, i) => [card, i]);
  return found.cards.map((card) => left.splice(left.findIndex(([held]) => held === card), 1)[0][1]);
}

/** What the main button does with the cards picked. */
function playWords(exact, chosen, scene, t) {
  const verb = t(`guandan.do_${scene.stage}`);
  if (exact.length === 1) return `${verb}: ${playName(exact[0].play, t)}`;
  if (exact.length > 1) return t("guandan.choose_reading", {n: exact.length});
  return chosen.length ? t("guandan.no_such_play") : verb;
}

// ---- names ----

/** A play in words: its type and what ranks it. */
export function playName(play, t) {
  const rest = play.text.replace(/^\S+ ?/, "");
  return `${t(`type.${play.type}`)}${["PASS", "tribute", "back"].includes(play.type) ? "" : ` ${rest}`}`.trim();
}

/** What a card of a play stands for, if it is wild and not itself. */
function standsFor(card, role, scene) {
  if (card !== scene.wild || !role || role === card || role === scene.level || role === "tribute" || role === "back") return null;
  return role;
}

const PlayCards = ({cards, roles, scene, t}) =>
  cards.map((card, i) => html`<${Mini} key=${i} name=${card} as=${roles && standsFor(card, roles[i], scene)} t=${t} />`);

const TeamMark = ({team, t}) => html`<svg class="badge" viewBox="-20 -20 40 40" role="img" aria-label=${t("guandan.team", {team})}>
  <g class=${`chip team${team + 1}`}>${team ? html`<rect x="-15" y="-15" width="30" height="30" rx="5" />` : html`<circle r="17" />`}<text y="7" font-size="20">${team}</text></g></svg>`;

// ---- the table ----

function Header({scene, names, t}) {
  const unit = scene.unit === "match" ? t("guandan.round_of_match", {n: scene.round}) : t("guandan.one_round");
  return html`<header class="guandan-head">
    <div class="levels">${scene.teams.map(({team, level, owns, fails}) => html`<span class=${`level ${owns ? "owns" : ""}`} key=${team} data-testid=${`level-${team}`}>
      <${TeamMark} team=${team} t=${t} /> ${t("guandan.level")} <b>${rankText(level)}</b>
      ${owns && html` <small>${t("guandan.owns")}</small>`}
      ${fails > 0 && html` <small>${t("guandan.fails", {n: fails})}</small>`}</span>`)}
      <span class="level">${t("guandan.round_level")} <b>${rankText(scene.level)}</b>, ${t("guandan.wild")} <${Mini} name=${scene.wild} t=${t} /></span>
    </div>
    <p class="facts">${unit} · ${t(`profile.${scene.profile}`)} · <strong role="status" data-testid="prompt">${prompt(scene, names, t)}</strong></p>
  </header>`;
}

/** Who does what now, and whose play it is. */
function prompt(scene, names, t) {
  if (scene.mover === null) return scene.headline;
  const name = nameOf(names, scene.mover, t);
  if (scene.stage !== "play") return t(`guandan.to_${scene.stage}`, {name});
  if (!scene.to_beat) return t("guandan.to_lead", {name});
  return t("guandan.to_follow", {name, owner: nameOf(names, scene.to_beat.seat, t)});
}

/** The other seats left to right as they sit, then the viewer's own plays. */
function Table({scene, names, viewer, t}) {
  const spots = ["below", "right", "above", "left"];
  return html`<div class="guandan-table">${[3, 2, 1, 0].map((spot) => {
    const seat = (viewer + spot) % 4;
    return html`<${Seat} key=${seat} spot=${spots[spot]} scene=${scene} seat=${scene.seats[seat]} names=${names} own=${spot === 0} t=${t} />`;
  })}</div>`;
}

function Seat({scene, seat, spot, names, own, t}) {
  const play = scene.trick.find((found) => found.seat === seat.seat);
  const leads = scene.to_beat && scene.to_beat.seat === seat.seat;
  const passed = scene.passed.includes(seat.seat);
  const left = seat.place === null ? t("board.cards_left", {n: seat.left}) : t(`place.${seat.place}`);
  return html`<section class=${`seat ${spot} ${seat.seat === scene.mover ? "mover" : ""}`} data-testid=${`seat-${seat.seat}`} aria-label=${nameOf(names, seat.seat, t)}>
    <h3><${TeamMark} team=${seat.team} t=${t} /> <span class="who">${nameOf(names, seat.seat, t)}</span>${seat.seat === scene.mover ? html` <span class="to-move" title=${t("board.to_move")}>◀<span class="hidden">${t("board.to_move")}</span></span>` : ""}</h3>
    <p class=${`count ${seat.place === null && seat.left <= 10 ? "few" : ""}`}>${left}</p>
    <div class=${`played ${leads ? "owner" : ""}`}>
      ${leads && html`<span class="owner-word">${t("guandan.trick_owner")}</span>`}
      ${passed ? html`<span class="passed">${t("guandan.passed")}</span>` : play ? html`<${PlayOf} play=${play} scene=${scene} t=${t} />` : ""}
    </div>
    ${!own && seat.cards.length > 0 && html`<p class="open-hand">${!seat.open && html`<small>${t("guandan.known")}</small> `}<${PlayCards} cards=${seat.cards} scene=${scene} t=${t} /></p>`}
  </section>`;
}

/** A play that was made, with what its wilds stand for. */
function PlayOf({play, scene, t}) {
  const as = rolesOf(play.spelt);
  return html`<span class="play-of">${play.cards.map((card, i) => html`<${Mini} key=${i} name=${card} as=${as[i]} t=${t} />`)}</span>`;
}

/** Roles from "S9 H2 as 9": null where a card is itself. */
function rolesOf(spelt) {
  return [...spelt.matchAll(/(\w+)(?: as (\w+))?/g)].map((found) => found[2] || null);
}

/** Tribute and return: what is due and why, what was given. */
function Tribute({scene, names, viewer, t}) {
  const {anti, finish, payers, given, chosen} = scene.tribute;
  const name = (seat) => nameOf(names, seat, t);
  if (!anti && !given.length && scene.stage === "play") return null;
  const lines = [];
  if (anti) lines.push(t("tribute.anti"));
  if (scene.stage !== "play" && finish) {
    lines.push(t("tribute.finish", {first: name(finish[0]), second: name(finish[1]), third: name(finish[2]), last: name(finish[3])}));
    const key = payers.length === 2 ? "tribute.why_double" : "tribute.why_single";
    lines.push(t(key, {payer: name(payers[0]), other: name(payers[payers.length - 1]), first: name(finish[0])}));
  }
  if (scene.stage === "tribute") lines.push(t("tribute.rule_pay"));
  if (scene.stage === "return") lines.push(t("tribute.rule_return"));
  return html`<section class="tribute" data-testid="tribute" aria-label=${t("tribute.title")}>
    <h3>${t("tribute.title")}</h3>
    ${lines.map((line) => html`<p key=${line}>${line}</p>`)}
    ${given.map(({payer, to, card, back}) => html`<p key=${payer}>${name(payer)} → ${name(to)}: <${Mini} name=${card} t=${t} />
      ${back && html` · ${name(to)} → ${name(payer)}: <${Mini} name=${back} t=${t} />`}</p>`)}
    ${chosen && html`<p>${t("tribute.chosen")} <${Mini} name=${chosen} t=${t} /></p>`}
  </section>`;
}

// ---- the hand ----

function Hand({scene, hand, picked, pick, hinted, names, t}) {
  const [bySuit, setBySuit] = useState(false);
  const order = useMemo(() => {
    const places = hand.cards.map((_, i) => i);
    const suit = (i) => "SHCDJ".indexOf(parse(hand.cards[i]).suit);
    return bySuit ? places.sort((a, b) => suit(a) - suit(b) || a - b) : places;
  }, [hand, bySuit]);
  const toggle = (i) => pick(picked.includes(i) ? picked.filter((j) => j !== i) : [...picked, i]);

  function onKey(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    event.stopPropagation(); // the page has arrow keys of its own
    const buttons = [...event.currentTarget.querySelectorAll("button")];
    const to = buttons[buttons.indexOf(event.target) + step];
    if (to) to.focus();
    event.preventDefault();
  }

  if (!hand.cards.length) return null;
  return html`<section class="guandan-hand" aria-label=${t("board.hand_of", {name: nameOf(names, hand.seat, t)})}>
    <div class="hand-head"><span>${nameOf(names, hand.seat, t)} · ${t("board.cards_left", {n: hand.left})}</span>
      <button type="button" data-testid="sort" onClick=${() => setBySuit(!bySuit)}>${t(bySuit ? "guandan.sort_rank" : "guandan.sort_suit")}</button></div>
    <div class="fan" onKeyDown=${onKey}>${order.map((i) => {
      const card = hand.cards[i];
      const wild = card === scene.wild;
      const words = cardWords(card, t) + (wild ? `, ${t("guandan.wild")}` : "");
      return html`<button type="button" key=${i} data-card=${card} class=${`card ${hinted.includes(i) ? "hinted" : ""}`}
        aria-pressed=${picked.includes(i)} aria-label=${words} title=${words} onClick=${() => toggle(i)}>
        <${Face} name=${card} wild=${wild} t=${t} /></button>`;
    })}</div>
  </section>`;
}

// ---- the plays ----

/** Plays by type; those that hold the picked cards, and the words searched for. */
function Plays({scene, moves, chosen, play, heat, candidates, t}) {
  const [type, setType] = useState(null);
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(FIRST);
  useEffect(() => setMost(FIRST), [positionKey(scene), chosen.join(), search, type]);
  useEffect(() => {
    setSearch("");
    setType(null);
  }, [positionKey(scene)]);
  const wanted = search.trim().toUpperCase().replace(/10/g, "T").split(/[\s,]+/).filter(Boolean);
  const fitting = moves.filter((m) => holds(m.cards, chosen) && (chosen.length || wanted.length || m.first) && matches(m, wanted, t));
  const types = [...new Set(fitting.map((m) => m.play.type))];
  const active = types.includes(type) ? type : null;
  const rank = rankOf(heat, candidates);
  const found = fitting
    .filter((m) => active === null || m.play.type === active)
    .map((m, i) => ({m, i, exact: chosen.length > 0 && m.cards.length === chosen.length}))
    .sort((a, b) => b.exact - a.exact || rank(b.m) - rank(a.m) || a.i - b.i)
    .map(({m}) => m);
  return html`<section class="plays" aria-label=${t("guandan.plays")}>
    <div class="plays-head">
      <h3>${t("guandan.plays_found", {n: found.length})}</h3>
      <input type="search" data-testid="play-search" value=${search} placeholder=${t("guandan.search")} aria-label=${t("guandan.search")}
        onInput=${(event) => setSearch(event.target.value)} />
    </div>
    <div class="types" role="group" aria-label=${t("guandan.types")}>
      <button type="button" aria-pressed=${active === null} onClick=${() => setType(null)}>${t("guandan.all")} ${fitting.length}</button>
      ${types.map((name) => html`<button type="button" key=${name} data-type=${name} aria-pressed=${active === name} onClick=${() => setType(active === name ? null : name)}>
        ${t(`type.${name}`)} ${fitting.filter((m) => m.play.type === name).length}</button>`)}
    </div>
    <ol>${found.slice(0, most).map((m) => html`<li key=${m.move}><${Entry} m=${m} scene=${scene} heat=${heat} chosen=${chosen} play=${play} t=${t} /></li>`)}</ol>
    ${found.length > most && html`<button type="button" data-testid="more" onClick=${() => setMost(most + 5 * FIRST)}>${t("guandan.more", {n: found.length - most})}</button>`}
  </section>`;
}

/** Whether every word searched for is in the move, its cards or the name of its type. */
function matches(m, wanted, t) {
  if (!wanted.length) return true;
  const text = `${m.move} ${t(`type.${m.play.type}`)}`.toUpperCase();
  return wanted.every((word) => text.includes(word));
}

/** What comes first: the candidates in their order, then by heat, else as listed. */
function rankOf(heat, candidates) {
  const places = new Map((candidates || []).map(({text}, i) => [text, 1e6 - i]));
  return (m) => places.get(m.move) ?? places.get(m.play.text) ?? (heat && heat.values[m.action]) ?? -1e6;
}

function Entry({m, scene, heat, chosen, play, t}) {
  const value = heat && heat.values[m.action];
  const warm = value !== undefined && value !== null && heat ? shade(heat, value) : null;
  const more = m.first && !chosen.length ? m.play.ways.length - 1 : 0;
  return html`<button type="button" class="entry" data-move=${m.move} onClick=${() => play(m.move)}>
    ${warm && html`<svg class="warmth" viewBox="0 0 10 10" aria-hidden="true"><rect class=${warm.name} width="10" height="10" opacity=${warm.opacity} /></svg>`}
    <span class="what">${playName(m.play, t)}</span>
    <span class="cards"><${PlayCards} cards=${m.cards} roles=${m.play.roles} scene=${scene} t=${t} /></span>
    ${more > 0 && html`<small>${t("guandan.ways", {n: more})}</small>`}
    ${warm && html`<span class="value">${valueText(heat, value)}${heat.kind === "q" ? "" : " %"}</span>`}
  </button>`;
}

function History({scene, names, t}) {
  if (!scene.history.length) return null;
  return html`<details class="history"><summary>${t("guandan.history")}</summary>
    <ol>${scene.history.map((play, i) => html`<li key=${i}>${nameOf(names, play.seat, t)}: <${PlayOf} play=${play} scene=${scene} t=${t} /></li>`)}</ol></details>`;
}
