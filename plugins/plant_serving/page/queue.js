/** The queue: documents that wait, how far people are, and where they disagree. */

import { request } from "./server.js";
import { element, say, showCount, showList, texts } from "./texts.js";

const LISTED = 100; // documents that are shown at a time
const PAUSE = 150; // ms between a key and the search
const AGAIN = 2000; // ms until the list is asked for again while the model looks through it

const part = (id) => document.getElementById(id);

export class QueuePanel {
  /** on: open(place), attempt(work), who(). */
  constructor(on) {
    Object.assign(this, { on, all: [], number: null, place: null, before: [], offset: 0, found: 0, rows: [], asked: 0 });
    for (const [value, words] of Object.entries(texts.shown)) part("shown").append(element("option", { value }, words));
    part("shown").addEventListener("change", () => this.on.attempt(() => this.refresh({ start: 0 })));
    part("sought").addEventListener("input", () => this.#seek());
    part("page-before").addEventListener("click", () => this.#turn(-1));
    part("page-after").addEventListener("click", () => this.#turn(1));
    part("page-first").addEventListener("change", ({ target }) => this.#list(target.valueAsNumber - 1));
    part("queues").addEventListener("change", ({ target }) => this.on.attempt(() => this.choose(Number(target.value))));
    part("documents").addEventListener("keydown", (event) => this.#walk(event));
    part("sought").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.#current()?.focus();
    });
  }

  get queue() {
    return this.all.find(({ queue }) => queue === this.number);
  }

  /** Ask which queues there are, and show the last one. */
  async start() {
    await this.#ask();
    if (this.all.length) await this.choose(this.all[0].queue);
  }

  async choose(number) {
    this.number = number;
    this.place = null;
    this.before = [];
    part("shown").value = "all";
    part("sought").value = "";
    part("waiting").open = true;
    await this.refresh({ start: 0 });
  }

  /** A queue of files: [{name, content}]; what was odd in them. */
  async add(files) {
    const { queue, notes } = await request("queues", { body: { files } });
    await this.choose(queue);
    return notes;
  }

  /** The document at a place, which is the current one from now on; the one before is kept for `back`. */
  async take(place) {
    const found = await request(`queues/${this.number}/documents/${place}?${this.#parameters()}`);
    if (place === this.before.at(-1)) this.before.pop();
    else if (this.place !== null && this.place !== place) this.before.push(this.place);
    this.place = place;
    this.#show();
    return found;
  }

  /** The place of the document that was open before the current one; undefined: there is none. */
  get back() {
    return this.before.at(-1);
  }

  /** The place of the document that is next; null: none waits. */
  async next() {
    const after = this.place === null ? {} : { after: this.place };
    return (await request(`queues/${this.number}/next?${this.#parameters(after)}`)).place;
  }

  /** Show the part of the list that begins at `start`, or the one that holds a place. */
  async refresh({ start = null, around = null } = {}) {
    clearTimeout(this.timer);
    const asked = ++this.asked;
    await this.#ask();
    const wanted = { show: part("shown").value, q: part("sought").value, start: start ?? this.offset, limit: LISTED };
    const answer = await request(`queues/${this.number}?${this.#parameters({ ...wanted, ...(around !== null && { around }) })}`);
    if (asked !== this.asked) return; // another part was asked for meanwhile
    Object.assign(this, { found: answer.found, offset: answer.start, rows: answer.documents });
    this.#show();
    if (start !== null || around !== null) this.#bringIntoView(this.#current());
    const { order, scored, documents } = this.queue ?? {};
    if (order === "doubt" && scored < documents) {
      this.timer = setTimeout(() => this.refresh().catch(() => {}), AGAIN); // the next action shows what is wrong
    }
  }

  /** Show the part from a place of the list on. */
  #list(start) {
    const last = Math.max(this.found - 1, 0);
    return this.on.attempt(() => this.refresh({ start: Math.min(Math.max(start || 0, 0), last) }));
  }

  #turn(direction) {
    return this.#list(this.offset + direction * LISTED);
  }

  /** Look for documents by id or words, once no more is typed. */
  #seek() {
    clearTimeout(this.seeking);
    this.seeking = setTimeout(() => this.on.attempt(() => this.refresh({ start: 0 })), PAUSE);
  }

  /** Look for a document: the list is opened, and the search has the focus. */
  seek() {
    part("waiting").open = true;
    part("sought").focus();
  }

  async #ask() {
    this.all = await request(`queues?${this.#parameters()}`);
  }

  #parameters(more = {}) {
    return new URLSearchParams({ who: this.on.who(), ...more });
  }

  #show() {
    const { queue } = this;
    part("queue").hidden = !queue;
    if (!queue) return;
    const { name, documents, decided, conflicts, scored, order } = queue;
    part("queue-title").textContent = name;
    part("queues").replaceChildren(...this.all.map((one) => element("option", { value: one.queue, selected: one === queue }, one.name)));
    part("queues").hidden = this.all.length < 2;
    part("queue-title").classList.toggle("hidden", this.all.length > 1);
    part("progress").max = documents;
    part("progress").value = decided;
    const words = [say("progress", { decided, n: documents })];
    if (conflicts) words.push(say("conflicts", { n: conflicts }));
    if (order === "doubt" && scored < documents) words.push(say("lookedThrough", { scored }));
    part("progress-words").textContent = words.join(" · ");
    const focused = part("documents").contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
    part("documents").replaceChildren(...this.rows.map((row) => this.#makeRow(row)));
    part("none").hidden = this.rows.length > 0;
    part("back").disabled = this.back === undefined;
    part("pages").hidden = this.found <= this.rows.length;
    part("page-first").max = this.found;
    part("page-first").value = this.offset + 1;
    part("page-last").textContent = say("pageLast", { last: showCount(this.offset + this.rows.length), n: this.found });
    part("page-before").disabled = this.offset === 0;
    part("page-after").disabled = this.offset + this.rows.length >= this.found;
    const current = this.#current();
    for (const button of this.#buttons()) button.tabIndex = button === current ? 0 : -1;
    if (focused !== undefined) this.#buttons().find(({ dataset }) => dataset.place === focused)?.focus({ preventScroll: true });
  }

  #buttons() {
    return [...part("documents").querySelectorAll("button")];
  }

  #current() {
    return this.#buttons().find(({ dataset }) => dataset.place === String(this.place)) ?? this.#buttons()[0];
  }

  #makeRow({ place, id, heading, people, open, conflict }) {
    const state = conflict ? "conflict" : open ? "open" : "decided";
    const marks = { conflict: "≠", open: "", decided: "✓" };
    return element(
      "li",
      {},
      element(
        "button",
        { class: `waiting ${state}`, "data-place": place, "aria-current": place === this.place && "true", onclick: () => this.on.open(place) },
        element("span", { class: "mark", "aria-hidden": "true" }, marks[state]),
        element("span", { class: "hidden" }, texts.states[state]),
        element("span", { class: "heading", dir: "auto" }, heading || say("emptyText")),
        element("span", { class: "pale", dir: "auto" }, [id, ...(people.length ? [showList(people.map((one) => one || say("nobody")))] : [])].join(" · ")),
      ),
    );
  }

  #bringIntoView(button) {
    const box = part("documents");
    if (!button) return;
    const top = button.offsetTop;
    if (top < box.scrollTop || top + button.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 3;
  }

  /** Go to the next or the previous document of the list, also where that is on another part of it. */
  async #walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    let next = this.#buttons()[this.#buttons().indexOf(document.activeElement) + step];
    if (!next && (step > 0 ? this.offset + this.rows.length < this.found : this.offset > 0)) {
      await this.#turn(step);
      next = this.#buttons().at(step > 0 ? 0 : -1);
    }
    if (!next) return;
    for (const button of this.#buttons()) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  }
}
