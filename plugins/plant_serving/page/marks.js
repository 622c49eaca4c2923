/** The text with its words that speak for labels. */

import { element } from "./texts.js";

const FAINTEST = 0.12; // of the strongest word of a label, by network or scorers: what is fainter is not marked
const LEVELS = 3;
const MOST = 2000; // words of a label that are marked at most

let counted = {}; // the text whose characters were counted last, and where they are

/** The UTF-16 offset of a code point, which is how the server counts. */
function offsets(text) {
  if (counted.text === text) return counted.at;
  const places = [];
  const astral = /[\u{10000}-\u{10ffff}]/u.test(text);
  for (let i = 0; astral && i < text.length; i += text.codePointAt(i) > 0xffff ? 2 : 1) places.push(i);
  counted = { text, at: astral ? (point) => places[point] ?? text.length : (point) => Math.min(point, text.length) };
  return counted.at;
}

/** The stretches of a text that words of explanations cover, in order: [{start, end, speaks: [{label, network, weight}]}]. */
export function stretches(text, explanations) {
  const at = offsets(text);
  const strength = (word) => Math.abs(word.weight);
  const words = explanations.flatMap(({ label, parts }) =>
    [true, false].flatMap((network) => {
      const all = parts.flatMap((part) => ((part.name === "network") === network ? part.words : []));
      const sums = sumWords(text, all);
      const places = new Map(all.map((word) => [`${word.start} ${word.end}`, word])); // each once, with what its word adds in all
      const summed = [...places.values()].map(({ start, end }) => ({ start, end, weight: sums.get(wordAt(text, start, end)) }));
      const strongest = summed.sort((one, other) => strength(other) - strength(one)).slice(0, MOST);
      const seen = strongest.filter((word) => strength(word) > strength(strongest[0]) * FAINTEST);
      return seen.map(({ start, end, weight }) => ({ label, network, weight, start: at(start), end: at(end) }));
    }),
  );
  const borders = [...new Set(words.flatMap(({ start, end }) => [start, end]))].sort((one, other) => one - other);
  const place = new Map(borders.map((border, i) => [border, i]));
  const found = borders.map((start, i) => ({ start, end: borders[i + 1], speaks: [] }));
  for (const word of words) for (let i = place.get(word.start); i < place.get(word.end); i++) found[i].speaks.push(word);
  return found.filter(({ speaks }) => speaks.length);
}

/** The word of a stretch, whatever its case. */
function wordAt(text, start, end) {
  const at = offsets(text);
  return text.slice(at(start), at(end)).toLowerCase();
}

/** What each word adds at all its places: a Map of log-odds by word. */
function sumWords(text, words) {
  const sums = new Map();
  for (const { start, end, weight } of words) {
    const word = wordAt(text, start, end);
    sums.set(word, (sums.get(word) ?? 0) + weight);
  }
  return sums;
}

/** The strongest words of a part of an explanation, each once: [{word, weight}], strongest first. */
export function strongestWords(text, words, count) {
  const all = [...sumWords(text, words)].map(([word, weight]) => ({ word, weight }));
  return all.sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight)).slice(0, count);
}

export class MarkedText {
  /** point(word, sums): called with a word and what it says by label (a Map of log-odds), or without where no word is pointed at. */
  constructor(box, point) {
    Object.assign(this, { box, point, lit: [], label: null, marks: new Map(), speaks: new Map() });
    box.addEventListener("pointerover", ({ target }) => this.#pointAt(target));
    box.addEventListener("pointerleave", () => this.#pointAt(document.activeElement));
    box.addEventListener("focusin", ({ target }) => this.#pointAt(target));
    box.addEventListener("focusout", () => this.#pointAt(null));
  }

  show(text, explanations) {
    const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset.start : undefined;
    const parts = [];
    this.marks = new Map(); // by label: [{span, network, scorers}]
    this.speaks = new Map(); // by span: the labels it speaks for
    this.lit = [];
    this.label = null;
    let end = 0;
    for (const stretch of stretches(text, explanations)) {
      const span = element("span", { class: "word", tabindex: "-1", "data-start": stretch.start }, text.slice(stretch.start, stretch.end));
      parts.push(text.slice(end, stretch.start), span);
      end = stretch.end;
      const sums = new Map();
      const byLabel = new Map();
      for (const { label, network, weight } of stretch.speaks) {
        sums.set(label, (sums.get(label) ?? 0) + weight);
        const mark = byLabel.get(label) ?? { span, network: 0, scorers: 0 };
        mark[network ? "network" : "scorers"] += weight;
        byLabel.set(label, mark);
      }
      for (const [label, mark] of byLabel) {
        if (!this.marks.has(label)) this.marks.set(label, []);
        this.marks.get(label).push(mark);
      }
      this.speaks.set(span, sums);
    }
    this.box.replaceChildren(...parts, text.slice(end));
    if (focused) this.box.querySelector(`[data-start="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Light up the words of one label; seek: bring the strongest one into view. */
  light(label, seek = false) {
    if (label === this.label && !seek) return;
    this.label = label;
    for (const { dataset } of this.lit) {
      delete dataset.network;
      delete dataset.scorers;
    }
    const marks = this.marks.get(label) ?? [];
    const size = ({ network, scorers }) => Math.max(Math.abs(network), Math.abs(scorers));
    const most = marks.reduce((found, mark) => Math.max(found, size(mark)), 0);
    for (const { span, ...weights } of marks) {
      for (const [kind, weight] of Object.entries(weights)) {
        if (weight) span.dataset[kind] = `${weight > 0 ? "for" : "against"}${Math.ceil((LEVELS * Math.abs(weight)) / most)}`;
      }
    }
    this.lit = marks.map(({ span }) => span);
    if (seek && most) this.#bringIntoView(marks.find((mark) => size(mark) === most).span);
  }

  /** Go to the next (1) or previous (-1) word that is lit. */
  step(direction) {
    const at = this.lit.indexOf(document.activeElement);
    const next = this.lit[at < 0 && direction < 0 ? this.lit.length - 1 : (at + direction + this.lit.length) % this.lit.length];
    if (!next) return;
    this.#bringIntoView(next);
    next.focus({ preventScroll: true });
  }

  #bringIntoView(span) {
    const { box } = this;
    const top = span.offsetTop - box.offsetTop;
    if (top < box.scrollTop || top + span.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 3;
  }

  #pointAt(target) {
    const sums = this.speaks.get(target);
    this.point(sums ? target.textContent : null, sums);
  }
}
