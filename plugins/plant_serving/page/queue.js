/** The queue: documents that wait, how far people are, and where they disagree. */

import { request } from "./server.js";
import { element, say, showList, texts } from "./texts.js";

const LISTED = 100; // documents that are shown at a time
const AGAIN = 2000; // ms until the list is asked for again while the model looks through it

const part = (id) => document.getElementById(id);

export class QueuePanel {
  /** on: open(place), attempt(work), who(). */
  constructor(on) {
    Object.assign(this, { on, all: [], number: null, place: null, rows: [] });
    for (const [value, words] of Object.entries(texts.shown)) part("shown").append(element("option", { value }, words));
    part("shown").addEventListener("change", () => this.on.attempt(() => this.refresh(LISTED)));
    part("queues").addEventListener("change", ({ target }) => this.on.attempt(() => this.choose(Number(target.value))));
    part("more").addEventListener("click", () => this.on.attempt(() => this.refresh(this.rows.length + LISTED)));
    part("documents").addEventListener("keydown", (event) => this.#walk(event));
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
    part("shown").value = "all";
    part("waiting").open = true;
    await this.refresh(LISTED);
  }

  /** A queue of files: [{name, content}]; what was odd in them. */
  async add(files) {
    const { queue, notes } = await request("queues", { body: { files } });
    await this.choose(queue);
    return notes;
  }

  /** The document at a place, which is the current one from now on. */
  async take(place) {
    const found = await request(`queues/${this.number}/documents/${place}?${this.#parameters()}`);
    this.place = place;
    this.#show();
    return found;
  }

  /** The place of the document that is next; null: none waits. */
  async next() {
    const after = this.place === null ? {} : { after: this.place };
    return (await request(`queues/${this.number}/next?${this.#parameters(after)}`)).place;
  }

  async refresh(count = Math.max(this.rows.length, LISTED)) {
    clearTimeout(this.timer);
    await this.#ask();
    const show = { show: part("shown").value, limit: Math.min(count, 500) };
    this.rows = await request(`queues/${this.number}?${this.#parameters(show)}`);
    this.#show();
    const { order, scored, documents } = this.queue ?? {};
    if (order === "doubt" && scored < documents) {
      this.timer = setTimeout(() => this.refresh().catch(() => {}), AGAIN); // the next action shows what is wrong
    }
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
    part("more").hidden = this.rows.length < LISTED || this.rows.length >= documents || this.rows.length >= 500;
    const buttons = [...part("documents").querySelectorAll("button")];
    const current = buttons.find(({ dataset }) => dataset.place === String(this.place)) ?? buttons[0];
    for (const button of buttons) button.tabIndex = button === current ? 0 : -1;
    if (focused !== undefined) buttons.find(({ dataset }) => dataset.place === focused)?.focus({ preventScroll: true });
    this.#bringIntoView(current);
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

  #walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = [...part("documents").querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + (step ?? NaN)];
    if (!step || !next) return;
    event.preventDefault();
    event.stopPropagation();
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  }
}
