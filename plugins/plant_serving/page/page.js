/** The page of `plant serve`: a text, its labels with their reasons, and what a person decides. */

import { LabelList } from "./labels.js";
import { MarkedText } from "./marks.js";
import { save, textId, WRITERS } from "./record.js";
import { FourParts, request } from "./server.js";
import { element, fillTexts, nameOf, say, shorten, showList, showScore, texts } from "./texts.js";

const LIMIT = 20; // labels
const LARGEST = 10; // MB of a file
const TOGETHER = 5; // labels that are explained in one request
const LONG = 10_000; // characters to paste
const PAUSE = 120; // ms between a key and the search

const part = (id) => document.getElementById(id);
const editor = part("editor");
const search = part("search");
const found = part("found");

let models = [];
let model; // the one that is used
let text = null; // of the labels that are shown; null: none are
let explanations = new Map(); // by label
let waiting = []; // labels to explain, first ones first
let explainer = null; // the signal of what runs
let history = []; // of decisions: [label, what was decided before]
let unsent = false;
let stop = new AbortController(); // of the requests for this text

const list = new LabelList(part("bands"), {
  open(label) {
    marked.light(label, true);
    explainFirst(label);
  },
  point: (label) => marked.light(label ?? list.current),
  decide,
  acceptAll() {
    for (const { label, band, decision } of list.rows.values()) if (band === "assign" && !decision) decide(label, "accept");
  },
});

const marked = new MarkedText(part("reading"), (word, sums) => {
  list.mark(sums);
  if (word === null || document.activeElement?.className !== "word") return;
  const names = [...sums]
    .filter(([, weight]) => weight > 0)
    .sort((one, other) => other[1] - one[1])
    .map(([label]) => nameOf(list.rows.get(label)));
  tell(names.length ? say("wordSpeaks", { word, labels: showList(names) }) : say("wordSilent", { word }));
});

const tell = (words) => (part("status").textContent = words);

/** Do something that may fail, and show the error. */
async function attempt(work) {
  try {
    await work();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof FourParts)) throw error;
    const lines = ["where", "expected", "todo"].filter((name) => error.parts[name]);
    part("error").replaceChildren(
      element("h2", {}, error.parts.what),
      element("dl", {}, ...lines.flatMap((name) => [element("dt", {}, texts.errorParts[name]), element("dd", {}, error.parts[name])])),
      element("button", { class: "round", "aria-label": say("errorClose"), onclick: clearError }, "✕"),
    );
    part("error").scrollIntoView({ block: "nearest" });
  }
}

const clearError = () => part("error").replaceChildren();

// Models

async function start() {
  models = await request("models");
  part("model").replaceChildren(...models.map(({ id, title }) => element("option", { value: id }, title || id)));
  part("models").hidden = models.length < 2;
  choose(models[0]?.id);
}

function choose(id) {
  model = models.find((one) => one.id === id);
  if (!model) return;
  const { title, labels, documents, parts, right, recall } = model;
  const values = {
    title: title || id,
    labels: say("count", { n: labels }),
    documents: say("documents", { n: documents }),
    parts: showList(parts),
  };
  const sentences = [say("figures", values)];
  const percent = (share) => Math.round(100 * share);
  if (right != null) sentences.push(say("figuresRight", { right: percent(right) }));
  if (recall != null) sentences.push(say("figuresRecall", { recall: percent(recall) }));
  part("figures").replaceChildren(element("p", {}, sentences.join(" ")), element("p", {}, say("privacy")));
  const legend = (kind, words) => element("span", { class: `sample ${kind}` }, words);
  part("legend").replaceChildren(
    ...(model.network ? [legend("network for", say("legendNetwork"))] : []),
    legend("scorers for", say("legendScorers")),
    legend(`${model.network ? "network" : "scorers"} against`, say("legendAgainst")),
  );
}

// Text

function edit() {
  part("reading").hidden = part("edit").hidden = part("legend").hidden = true;
  editor.hidden = part("suggest").hidden = false;
  document.body.classList.remove("reading");
  editor.focus();
}

function startAnew(content, id) {
  if (unsent && !window.confirm(say("discard"))) return;
  stop.abort();
  clearError();
  editor.value = content;
  part("document").value = id;
  text = null;
  history = [];
  unsent = false;
  search.disabled = true;
  part("bands").hidden = part("note").hidden = true;
  part("start").hidden = false;
  tell("");
  showSize();
  showDecisions();
  edit();
}

async function openFile(file) {
  if (!file) return;
  await attempt(async () => {
    if (file.size > LARGEST * 1e6) throw FourParts.of("large", { where: file.name, n: LARGEST });
    let content;
    try {
      content = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      content = "\0";
    }
    if (content.includes("\0")) throw FourParts.of("file", { where: file.name });
    startAnew(content, file.name.replace(/\.[^.]*$/, ""));
  });
}

/** A browser takes seconds to paste a long text as if it were typed. */
function paste(event) {
  const pasted = event.clipboardData.getData("text/plain");
  if (pasted.length < LONG) return;
  event.preventDefault();
  editor.setRangeText(pasted, editor.selectionStart, editor.selectionEnd, "end");
  showSize();
}

const showSize = () => (part("size").textContent = say("size", { n: editor.value.length }));

// Labels

function suggest() {
  return attempt(async () => {
    stop.abort();
    stop = new AbortController();
    const asked = editor.value.toWellFormed?.() ?? editor.value;
    clearError();
    const { signal } = stop;
    setBusy(true);
    try {
      const answer = await request("suggest", { body: { model: model?.id, texts: [asked], limit: LIMIT }, signal });
      if (!signal.aborted) showLabels(asked, answer.results[0]);
    } finally {
      if (signal === stop.signal) setBusy(false);
    }
  });
}

function setBusy(busy) {
  part("labels").setAttribute("aria-busy", busy);
  part("suggest").disabled = busy;
  if (busy) tell(say("working"));
  else if (part("status").textContent === say("working")) tell("");
}

function showLabels(asked, { suggestions, note }) {
  const before = [...list.rows.values()].filter((row) => text !== null && row.decision);
  text = asked;
  explanations = new Map();
  waiting = suggestions.map(({ label }) => label);
  list.show(suggestions);
  for (const row of before) {
    if (!list.rows.has(row.label)) ask(row);
    list.decide(row.label, row.decision);
  }
  part("note").hidden = !note;
  part("note").textContent = note ?? "";
  part("start").hidden = true;
  part("bands").hidden = search.disabled = false;
  marked.show(text, []);
  editor.hidden = part("suggest").hidden = true;
  part("reading").hidden = part("edit").hidden = part("legend").hidden = false;
  part("reading").scrollTop = 0;
  document.body.classList.add("reading");
  const count = (band) => suggestions.filter((one) => one.band === band).length;
  const counts = { assign: count("assign"), review: count("review"), reject: count("reject") };
  tell(suggestions.length ? say("suggested", counts) : say("noLabels"));
  showDecisions();
  if (suggestions.length) list.open(suggestions[0].label, { focus: true });
}

/** Put a label that was not suggested among those that the user asked for. */
function ask({ label, title }) {
  list.add({ label, title, score: null, threshold: null, band: null }, "asked");
}

/** Explain a label before those that wait. */
function explainFirst(label) {
  if (explanations.has(label)) return;
  waiting = [label, ...waiting.filter((one) => one !== label)];
  list.wait(label);
  if (explainer !== stop.signal) explainWaiting(stop.signal);
}

async function explainWaiting(signal) {
  explainer = signal;
  for (let together = 1; waiting.length && !signal.aborted; together = TOGETHER) {
    const labels = waiting.splice(0, together); // the first one alone: somebody looks at it
    await attempt(async () => {
      try {
        const answer = await request("explain", { body: { model: model?.id, text, labels }, signal });
        for (const one of answer.explanations) explanations.set(one.label, one);
      } finally {
        if (!signal.aborted) showReasons(labels);
      }
    });
    if (!explanations.has(labels[0])) break;
  }
  if (explainer === signal) explainer = null;
}

function showReasons(labels) {
  marked.show(text, [...explanations.values()]);
  for (const label of labels) list.explain(label, explanations.get(label), text);
  marked.light(list.current, labels.includes(list.current));
}

// Decisions

function decide(label, decision) {
  const row = list.rows.get(label);
  if (!row || row.decision === decision) return;
  history.push([label, row.decision]);
  list.decide(label, decision);
  unsent = true;
  tell(say({ accept: "accepted", reject: "rejected" }[decision] ?? "undecided", { name: nameOf(row) }));
  showDecisions();
}

function undo() {
  const [label, before] = history.pop() ?? [];
  const row = list.rows.get(label);
  if (row) {
    list.decide(label, before);
    unsent = true;
    tell(say("undone", { name: nameOf(row) }));
  }
  showDecisions();
}

function showDecisions() {
  const rows = text === null ? [] : [...list.rows.values()];
  const count = (decision) => rows.filter((row) => row.decision === decision).length;
  const [accepted, rejected] = [count("accept"), count("reject")];
  part("decided").textContent = accepted + rejected ? say("decided", { accepted, rejected }) : "";
  part("undo").disabled = !history.length;
  part("send").disabled = !unsent || accepted + rejected === 0;
  part("export").hidden = text === null;
}

async function send() {
  await attempt(async () => {
    const decided = [...list.rows.values()].filter((row) => row.decision);
    const decisions = decided.map(({ label, decision, score, band }) => ({ label, decision, ...(band === null ? {} : { score }) }));
    const who = part("who").value.trim();
    const body = { model: model?.id, document: { id: documentId(), text }, ...(who && { who }), decisions };
    const { stored } = await request("feedback", { body });
    unsent = false;
    clearError();
    tell(say("sent", { n: stored }));
    showDecisions();
  });
}

const documentId = () => part("document").value.trim() || textId(text);

function exportAs(name) {
  const id = documentId();
  const labels = [...list.rows.values()].map(({ label, title, score, threshold, band, decision, explanation }) => {
    return { label, title, score, threshold, band, decision, explanation };
  });
  const record = { id, text, who: part("who").value.trim(), time: new Date().toISOString(), model: model?.id, labels };
  const file = `${id.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.${name}`;
  save(file, WRITERS[name](record));
  part("export").open = false;
  tell(say("exported", { file }));
}

// Search for another label

let searching = new AbortController();
let options = []; // what is found
let option = -1; // the chosen one's number

async function lookUp() {
  searching.abort();
  const { signal } = (searching = new AbortController());
  const query = search.value.trim();
  if (!query) return showFound(null);
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  if (signal.aborted) return;
  const parameters = new URLSearchParams({ q: query, limit: 12, ...(model && { model: model.id }) });
  await attempt(async () => showFound(await request(`labels?${parameters}`, { signal })));
}

function showFound(answer) {
  options = answer ?? [];
  found.hidden = answer === null;
  search.setAttribute("aria-expanded", options.length > 0);
  const items = options.map((one, i) =>
    element(
      "li",
      { role: "option", id: `found-${i}`, onpointerdown: (event) => (event.preventDefault(), pick(i)) },
      element("span", { class: "title", dir: "auto" }, nameOf(one)),
      element("span", { class: "pale" }, [...(one.title ? [shorten(one.label)] : []), say("documents", { n: one.documents })].join(" · ")),
    ),
  );
  found.replaceChildren(...(answer?.length === 0 ? [element("li", { role: "option", "aria-disabled": "true" }, say("foundNone"))] : items));
  highlight(options.length ? 0 : -1);
}

function highlight(number) {
  option = number;
  [...found.children].forEach((item, i) => item.setAttribute("aria-selected", i === option));
  found.children[option]?.scrollIntoView({ block: "nearest" });
  if (option < 0) search.removeAttribute("aria-activedescendant");
  else search.setAttribute("aria-activedescendant", `found-${option}`);
}

function pick(number) {
  const one = options[number];
  if (!one) return;
  search.value = "";
  showFound(null);
  if (!list.rows.has(one.label)) ask(one);
  list.open(one.label, { focus: true });
}

search.addEventListener("input", lookUp);
search.addEventListener("blur", () => showFound(null));
search.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps && options.length) highlight((option + steps[event.key] + options.length) % options.length);
  else if (event.key === "Enter") pick(option);
  else if (event.key === "Escape") showFound(null);
  else return;
  event.preventDefault();
  event.stopPropagation();
});

// Keys, buttons, files

/** What a key does with the current label. */
const KEYS = {
  j: () => list.move(1),
  k: () => list.move(-1),
  a: () => decideHere("accept"),
  r: () => decideHere("reject"),
  u: undo,
  e: edit,
  "/": () => search.focus(),
  ArrowRight: () => marked.step(1),
  ArrowLeft: () => marked.step(-1),
};

function decideHere(decision) {
  if (list.current === null) return;
  decide(list.current, decision);
  list.move(1);
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (document.querySelector("dialog[open]")) return;
  if (key === "Enter" && (event.ctrlKey || event.metaKey)) return void (event.preventDefault(), suggest());
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "Escape" && list.current !== null) return list.open(list.current, { focus: true });
  if (target.closest("input, textarea, select")) return;
  const inList = target.closest("#bands") && { ArrowDown: KEYS.j, ArrowUp: KEYS.k }[key];
  const does = key === "?" ? showHelp : text !== null && (inList || KEYS[key]);
  if (!does || (key.length === 1 && !part("keys").checked)) return;
  event.preventDefault();
  does();
});

const showHelp = () => part("help").showModal();

fillTexts();
part("start").append(element("ol", {}, ...texts.start.map((step) => element("li", {}, step))));
const keys = texts.keys.map(([key, does]) =>
  element(
    "tr",
    {},
    element("th", { scope: "row" }, ...key.split("  ").flatMap((one) => [element("kbd", {}, one), " "])),
    element("td", {}, does),
  ),
);
part("help-text").append(element("table", {}, element("tbody", {}, ...keys)), element("p", {}, say("helpWords")));
editor.addEventListener("input", showSize);
editor.addEventListener("paste", paste);
part("suggest").addEventListener("click", suggest);
part("edit").addEventListener("click", edit);
part("new").addEventListener("click", () => startAnew("", ""));
part("open").addEventListener("click", () => part("file").click());
part("file").addEventListener("change", ({ target }) => (openFile(target.files[0]), (target.value = "")));
part("model").addEventListener("change", ({ target }) => (choose(target.value), text !== null && suggest()));
part("undo").addEventListener("click", undo);
part("send").addEventListener("click", send);
part("help-open").addEventListener("click", showHelp);
for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => exportAs(button.dataset.export));
document.addEventListener("dragover", (event) => (event.preventDefault(), document.body.classList.add("dropping")));
document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  openFile(event.dataTransfer.files[0]);
});
window.addEventListener("beforeunload", (event) => unsent && event.preventDefault());
showSize();
attempt(start);
