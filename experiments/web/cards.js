/**
 * Cards drawn from text and four suit shapes: no picture files, no emoji fonts.
 *
 * A card is named as in moves: "7H" (Sequence; "J1", "J2" its jacks) or "H7" (Guandan; "SB", "HR"
 * its jokers).
 */

import {html} from "./vendor/htm/standalone.module.js";

/** Shapes in a square of side 100; "J" is a joker's star. */
const SHAPES = {
  S: "M50 6C70 32 94 46 94 65A20 20 0 0 1 56 75Q58 87 67 93H33Q42 87 44 75A20 20 0 0 1 6 65C6 46 30 32 50 6Z",
  H: "M50 91C20 64 5 49 5 32A23 23 0 0 1 50 25A23 23 0 0 1 95 32C95 49 80 64 50 91Z",
  C: "M50 6A22 22 0 0 1 69 39A22 22 0 1 1 55 67Q56 84 67 93H33Q44 84 45 67A22 22 0 1 1 31 39A22 22 0 0 1 50 6Z",
  D: "M50 4Q66 32 87 50Q66 68 50 96Q34 68 13 50Q34 32 50 4Z",
  J: "M50 5L61 38H96L68 59L78 93L50 72L22 93L32 59L4 38H39Z",
};

/** {rank, suit} of a card's name; the suit of a joker is "J", of a jack of Sequence "". */
export function parse(name) {
  if (name === "SB" || name === "HR") return {rank: name, suit: "J"};
  if (name === "J1" || name === "J2") return {rank: name, suit: ""};
  const [a, b] = name;
  return "SHCD".includes(a) ? {rank: b, suit: a} : {rank: a, suit: b};
}

/** Whether a card is printed in red. */
export const isRed = (name) => name === "HR" || "HD".includes(parse(name).suit || "-");

/** "10" for "T", other ranks as they are. */
export const rankText = (rank) => (rank === "T" ? "10" : rank);

/** A card in words, for people who listen. */
export function cardWords(name, t) {
  const {rank, suit} = parse(name);
  if (suit === "J") return t(rank === "HR" ? "card.big_joker" : "card.small_joker");
  if (!suit) return t(rank === "J2" ? "card.jack_place" : "card.jack_remove");
  return t("card.name", {rank: rankText(rank), suit: t(`suit.${suit}`)});
}

/** A suit inside an SVG picture, its upper left corner at x, y. */
export const Suit = ({suit, x, y, size, ink}) =>
  html`<path class=${ink} d=${SHAPES[suit]} transform=${`translate(${x} ${y}) scale(${size / 100})`} />`;

export const inkOf = (suit) => ("HD".includes(suit) ? "ink-red" : "ink-black");

/** Size of a face in its own coordinates. */
export const WIDTH = 44;
export const HEIGHT = 62;

/**
 * A card face up as a picture of its own; what matters is on its left, so that cards may overlap.
 * `wild`: it is wild here. `jack`: {power, suits} of a jack of Sequence.
 */
export function Face({name, wild, jack, t}) {
  const {rank, suit} = parse(name);
  return html`<svg class="face" viewBox="0 0 ${WIDTH} ${HEIGHT}" aria-hidden="true">
    <rect class=${`paper ${wild ? "wild" : ""}`} x="1" y="1" width="42" height="60" rx="5" />
    ${!suit ? jackFace(jack) : suit === "J" ? jokerFace(rank, t) : plainFace(rank, suit)}
    ${wild && html`<path class="wild-mark" d="M30 12l2.6 5.2 5.8.8-4.2 4 1 5.8-5.2-2.8-5.2 2.8 1-5.8-4.2-4 5.8-.8z" />`}
  </svg>`;
}

function plainFace(rank, suit) {
  const ink = inkOf(suit);
  return html`<text class=${`${ink} rank`} x="13" y="20" font-size=${rank === "T" ? 17 : 20}>${rankText(rank)}</text>
    <${Suit} suit=${suit} x=${5.5} y=${24} size=${15} ink=${ink} />
    <${Suit} suit=${suit} x=${21} y=${38} size=${19} ink=${ink} />`;
}

function jokerFace(rank, t) {
  const ink = rank === "HR" ? "ink-red" : "ink-black";
  return html`<${Suit} suit="J" x=${4} y=${5} size=${18} ink=${ink} />
    <text class=${`${ink} rank`} x="13" y="36" font-size="9.5">${t(rank === "HR" ? "joker.big" : "joker.small")}</text>
    <${Suit} suit="J" x=${19} y=${36} size=${21} ink=${ink} />`;
}

function jackFace(jack) {
  const [one, two] = jack.suits;
  return html`<text class="ink-black rank" x="22" y="21" font-size="20">J</text>
    <${Suit} suit=${one} x=${6} y=${25} size=${14} ink=${inkOf(one)} />
    <${Suit} suit=${two} x=${24} y=${25} size=${14} ink=${inkOf(two)} />
    <path class="power" d=${jack.power === "place" ? "M13 50H31M22 42V58" : "M13 50H31"} />`;
}

/** A card in a line of text; `as`: what a wild stands for. */
export function Mini({name, as, t}) {
  const {rank, suit} = parse(name);
  const words = as ? t("card.stands_for", {card: cardWords(name, t), as: roleText(as, t)}) : cardWords(name, t);
  const shape = suit || "J";
  const label = suit === "J" ? t(rank === "HR" ? "joker.big" : "joker.small") : rankText(rank);
  return html`<span class=${`mini ${isRed(name) ? "red" : ""}`}>
    <span class="hidden">${words} </span>
    <svg viewBox="0 0 100 100" aria-hidden="true"><path d=${SHAPES[shape]} /></svg><span aria-hidden="true">${label}</span>
    ${as && html`<b aria-hidden="true" class="as">→${roleMark(as)}</b>`}
  </span>`;
}

/** What a wild stands for: a rank "9", a card "H9", or "any" pair. */
function roleText(as, t) {
  if (as === "any") return t("role.any");
  return as.length === 2 ? cardWords(as, t) : rankText(as);
}

const GLYPH = {S: "♠\ufe0e", H: "♥\ufe0e", C: "♣\ufe0e", D: "♦\ufe0e"};

function roleMark(as) {
  if (as === "any") return "·";
  return as.length === 2 ? GLYPH[as[0]] + rankText(as[1]) : rankText(as);
}
