/** The labels of a text in their bands: scores, decisions, and why. */

import { strongestWords } from "./marks.js";
import { element, fill, nameOf, say, shorten, showList, showScore, showWeight, texts } from "./texts.js";

const BANDS = ["asked", "assign", "review", "reject"];
const WORDS = 6; // of a part of an explanation
const WORTH_SAYING = 0.5; // log-odds of a part that speaks for or against a label

export class LabelList {
  /** on: open(label), point(label or null), decide(label, decision or null), acceptAll(). */
  constructor(box, on) {
    Object.assign(this, { box, on, rows: new Map(), current: null });
    box.addEventListener("pointerover", ({ target }) => on.point(target.closest(".row")?.dataset.label ?? null));
    box.addEventListener("pointerleave", () => on.point(null));
  }

  /** Forget all labels; they stay where they are on the page until others are shown. */
  clear() {
    this.rows = new Map();
    this.current = null;
  }

  show(suggestions) {
    this.clear();
    this.bands = Object.fromEntries(BANDS.map((band) => [band, this.#makeBand(band)]));
    this.box.replaceChildren(...Object.values(this.bands).map(({ box }) => box));
    for (const suggestion of suggestions) this.add(suggestion, suggestion.band);
    const { assign, review, reject } = this.bands;
    reject.box.open = !assign.list.children.length && !review.list.children.length;
  }

  #makeBand(band) {
    const list = element("ul");
    const count = element("span", { class: "count" }, "0");
    const heading = element(
      "summary",
      {},
      element("h3", {}, texts.bands[band]),
      count,
      element("span", { class: "pale" }, texts.bandNotes[band]),
    );
    const box = element("details", { class: `band ${band}`, open: true, hidden: band === "asked" }, heading, list);
    const all = element("button", { class: "quiet all", onclick: this.on.acceptAll, hidden: true }, say("acceptAll"));
    if (band === "assign") box.append(all);
    return { box, list, count, all };
  }

  /** Add a label to a band; `asked` is for labels that the user looked for. */
  add(suggestion, band) {
    const { label, title } = suggestion;
    const name = nameOf(suggestion);
    const why = element("div", {
      class: "why",
      id: `why-${this.rows.size}`,
      role: "group",
      "aria-label": say("why", { name }),
      hidden: true,
    });
    const score = element("span", { class: "score" });
    const names = [
      element("span", { class: "title", dir: "auto" }, name),
      ...(title ? [" ", element("span", { class: "id", title: label }, shorten(label))] : []),
    ];
    const open = { class: "name", "aria-expanded": "false", "aria-controls": why.id, onclick: () => this.open(label, { toggle: true }) };
    const speaks = element("span", { class: "speaks" });
    const said = element("span", { class: "said pale", dir: "auto" });
    const button = element("button", open, element("span", { class: "names" }, ...names, said), speaks, score);
    const choose = (decision, sign) => {
      const onclick = () => this.on.decide(label, row.decision === decision ? null : decision);
      const words = say(decision, { name });
      return element("button", { class: `choose ${decision}`, "aria-pressed": "false", "aria-label": words, title: words, onclick }, sign);
    };
    const choices = { accept: choose("accept", "✓"), reject: choose("reject", "✕") };
    const item = element(
      "li",
      { class: "row", "data-label": label },
      element("div", { class: "line" }, button, ...Object.values(choices)),
      why,
    );
    const row = { ...suggestion, decision: null, stored: null, item, button, scoreBox: score, speaks, said, choices, why };
    this.rows.set(label, row);
    const { box, list, count, all } = this.bands[band];
    list.append(item);
    box.hidden = false;
    count.textContent = list.children.length;
    all.hidden = false;
    this.#showScore(row);
    this.#makeReachable();
  }

  /** Open one label and close the others; the label stays where it is on the screen. */
  open(label, { toggle = false, focus = false } = {}) {
    const row = this.rows.get(label);
    const close = toggle && this.current === label && !row.why.hidden;
    row.item.closest("details").open = true;
    const top = row.item.getBoundingClientRect().top;
    for (const other of this.rows.values()) {
      const shown = other === row && !close;
      other.why.hidden = !shown;
      other.button.setAttribute("aria-expanded", shown);
      other.item.classList.toggle("current", other === row);
    }
    window.scrollBy({ top: row.item.getBoundingClientRect().top - top, behavior: "instant" });
    this.current = label;
    this.#makeReachable();
    if (focus) {
      row.button.focus({ preventScroll: true });
      row.item.scrollIntoView({ block: "nearest" });
    }
    this.on.open(label);
  }

  /** Go to the next (1) or previous (-1) label of the open bands. */
  move(direction) {
    const shown = this.#shown();
    const at = shown.indexOf(this.current);
    const next = shown[at < 0 ? 0 : Math.min(Math.max(at + direction, 0), shown.length - 1)];
    if (next !== undefined) this.open(next, { focus: true });
  }

  #shown() {
    return [...this.box.querySelectorAll("details[open] .row")].map(({ dataset }) => dataset.label);
  }

  /** The tab key reaches the current label alone, and its buttons. */
  #makeReachable() {
    const reached = this.current ?? this.rows.keys().next().value;
    for (const { label, button, choices } of this.rows.values()) {
      for (const one of [button, ...Object.values(choices)]) one.tabIndex = label === reached ? 0 : -1;
    }
  }

  decide(label, decision) {
    const row = this.rows.get(label);
    row.decision = decision;
    for (const [one, button] of Object.entries(row.choices)) button.setAttribute("aria-pressed", one === decision);
    if (decision) row.item.dataset.decision = decision;
    else delete row.item.dataset.decision;
  }

  /** The labels whose decision is not the one that is stored of this person. */
  get changed() {
    return [...this.rows.values()].filter((row) => row.decision !== row.stored);
  }

  /** Show what other people decided: [{who, decision}]. */
  say(label, decisions, disagreed) {
    const { item, said } = this.rows.get(label);
    const words = decisions.map(({ who, decision }) => fill(texts.said[decision], { who: who || say("nobody") }));
    said.replaceChildren(...(disagreed ? [element("strong", {}, say("disagreed")), " "] : []), showList(words));
    item.classList.toggle("disagreed", disagreed);
  }

  /** Mark the labels that a word speaks for: a Map of log-odds by label, or nothing. */
  mark(sums = new Map()) {
    for (const { label, item, speaks } of this.rows.values()) {
      const weight = sums.get(label) ?? 0;
      item.classList.toggle("spoken", weight > 0);
      item.classList.toggle("against", weight < 0);
      speaks.textContent = weight ? showWeight(weight) : "";
    }
  }

  /** Say that the reasons of a label are on their way. */
  wait(label) {
    this.rows.get(label).why.replaceChildren(element("p", { class: "pale" }, say("looking")));
  }

  /** Show why a label has its score. */
  explain(label, explanation, text) {
    const row = this.rows.get(label);
    row.explanation = explanation;
    if (!explanation) return void row.why.replaceChildren(element("p", { class: "pale" }, say("noReasons")));
    row.score ??= explanation.score;
    row.threshold ??= explanation.threshold;
    this.#showScore(row);
    const { base, parts, log_odds: total } = explanation;
    const longest = Math.max(...[base, total, ...parts.map((part) => part.log_odds)].map(Math.abs));
    const line = (name, weight, kind) => {
      const cells = [element("td", {}, makeBar(weight / longest)), element("td", { class: "number" }, showWeight(weight))];
      return element("tr", { class: kind }, element("th", { scope: "row" }, name), ...cells);
    };
    const rows = parts.flatMap(({ name, log_odds: weight, words, note }) => {
      const kind = name === "network" ? "network" : "scorers";
      const marked = strongestWords(text, words, WORDS).map((one) =>
        element("span", { class: `${kind} ${one.weight > 0 ? "for" : "against"}` }, one.word),
      );
      const more = [...marked.flatMap((word) => [word, " "]), ...(note ? [element("span", { class: "pale" }, note)] : [])];
      return [
        line(name, weight, "part"),
        ...(more.length ? [element("tr", { class: "more" }, element("td", { colspan: 3 }, ...more))] : []),
      ];
    });
    const head = element(
      "tr",
      {},
      element("th", { scope: "col" }, say("part")),
      element("td"),
      element("th", { scope: "col", class: "number" }, say("logOdds")),
    );
    const sum = line(say("total", { score: showScore(explanation.score) }), total, "total");
    const table = element(
      "table",
      {},
      element("thead", {}, head),
      element("tbody", {}, line(say("base"), base, "base"), ...rows),
      element("tfoot", {}, sum),
    );
    row.why.replaceChildren(element("p", { class: "verdict" }, this.verdict(row, text)), table);
  }

  /** In a sentence or two: why a label is suggested, or why not. */
  verdict({ score, threshold, explanation: { parts } }, text) {
    const named = parts.flatMap(({ words }) => words);
    const speaking = strongestWords(text, named, Infinity).filter(({ weight }) => weight > 0);
    const words = showList(speaking.slice(0, 3).map(({ word }) => `“${word}”`));
    const silent = parts.some(({ log_odds }) => log_odds > WORTH_SAYING) ? "whyCommonWords" : "whyNoWord";
    if (threshold == null || score >= threshold) return say(words ? "whyEnough" : silent, { words });
    const sentences = [say(words ? "whyTooLittle" : silent, { words })];
    const [least] = [...parts].sort((one, other) => one.log_odds - other.log_odds);
    if (least?.log_odds < -WORTH_SAYING) sentences.push(say("whyAgainst", { part: least.name, weight: showWeight(least.log_odds) }));
    sentences.push(say("whyNeeded", { score: showScore(score), threshold: showScore(threshold) }));
    return sentences.join(" ");
  }

  #showScore({ score, threshold, scoreBox }) {
    if (score == null) return;
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--score", score);
    if (threshold != null) {
      bar.style.setProperty("--threshold", threshold);
      bar.append(element("i"));
    }
    const title = threshold == null ? "" : say("threshold", { score: showScore(threshold) });
    scoreBox.title = title;
    scoreBox.replaceChildren(bar, element("span", { class: "hidden" }, say("score")), showScore(score));
  }
}

/** A bar from the middle to the right (for) or left (against); share is from -1 to 1. */
function makeBar(share) {
  const bar = element("span", { class: `weight ${share < 0 ? "against" : "for"}`, "aria-hidden": "true" }, element("i"));
  bar.style.setProperty("--share", Math.abs(share) || 0);
  return bar;
}
