/** The page of `plant serve`: a text, its labels with their reasons, and what a person decides. */

import { LabelList } from "./labels.js";
import { MarkedText } from "./marks.js";
import { QueuePanel } from "./queue.js";
import { save, textId, WRITERS } from "./record.js";
import { FourParts, request } from "./server.js";
import { element, fill, fillTexts, nameOf, say, shorten, showList, showScore, showTime, texts } from "./texts.js";

const LIMIT = 20; // labels
const LARGEST = 10; // MB of a file
const TOGETHER = 5; // labels that are explained in one request
const LONG = 10_000; // characters to paste
const TABLE = /\.(csv|tsv|tab|json|jsonl|ndjson)$/i; // a file that is a queue
const NAME = "plant: your name"; // in the browser's storage
const PAUSE = 120; // ms between a key and the search

const NARROW = window.matchMedia("(max-width: 56rem)"); // as in page.css

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
let queued = null; // the document of the queue that is open
let moving = false; // to another document
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

const queue = new QueuePanel({ open: openQueued, attempt, who: () => part("who").value.trim() });

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
  await queue.start();
  if (queue.queue) part("next").focus();
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
  if (queued) return;
  showEditor();
}

function showEditor() {
  part("reading").hidden = part("edit").hidden = part("legend").hidden = true;
  editor.hidden = part("suggest").hidden = false;
  document.body.classList.remove("reading");
  editor.focus();
}

function startAnew(content, id, document = null) {
  stop.abort();
  queued = document;
  editor.readOnly = part("document").readOnly = queued !== null;
  clearError();
  editor.value = content;
  part("document").value = id;
  text = null;
  history = [];
  list.clear();
  search.disabled = true;
  part("bands").hidden = part("note").hidden = part("history").hidden = true;
  part("start").hidden = queued !== null;
  tell("");
  showSize();
  showDecisions();
  showEditor();
}

/** One text is opened; a table, or several texts, are a queue. */
async function openFiles(files) {
  if (!files.length) return;
  await attempt(async () => {
    const read = await Promise.all(files.map(readFile));
    const [{ name, content }] = read;
    if (!(await leave())) return;
    if (read.length === 1 && !TABLE.test(name)) return startAnew(content, name.replace(/\.[^.]*$/, ""));
    startAnew("", "");
    tell((await queue.add(read)).join(" "));
    part("next").focus();
  });
}

async function readFile(file) {
  if (file.size > LARGEST * 1e6) throw FourParts.of("large", { where: file.name, n: LARGEST });
  let content;
  try {
    content = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    content = "\0";
  }
  if (content.includes("\0")) throw FourParts.of("file", { where: file.name });
  return { name: file.name, content };
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
    const asked = queued?.text ?? editor.value.toWellFormed?.() ?? editor.value; // an editor changes ends of lines
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
  const before = [...list.rows.values()].filter((row) => row.decision || row.stored);
  const [isFirst, isSame] = [text === null, text === asked];
  text = asked;
  explanations = new Map();
  waiting = suggestions.map(({ label }) => label);
  list.show(suggestions);
  for (const row of before) {
    if (!list.rows.has(row.label)) ask(row);
    list.decide(row.label, row.decision);
    if (isSame) list.rows.get(row.label).stored = row.stored;
  }
  part("note").hidden = !note;
  part("note").textContent = note ?? "";
  part("start").hidden = true;
  part("bands").hidden = search.disabled = false;
  marked.show(text, []);
  editor.hidden = part("suggest").hidden = true;
  part("reading").hidden = part("legend").hidden = false;
  part("edit").hidden = queued !== null;
  part("reading").scrollTop = 0;
  document.body.classList.add("reading");
  if (queued) showHistory(isFirst);
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
  tell(say({ accept: "accepted", reject: "rejected" }[decision] ?? "undecided", { name: nameOf(row) }));
  showDecisions();
}

function undo() {
  const [label, before] = history.pop() ?? [];
  const row = list.rows.get(label);
  if (row) {
    list.decide(label, before);
    tell(say("undone", { name: nameOf(row) }));
  } else if (queued && label === undefined) tell(say("nothingUndone"));
  showDecisions();
}

function showDecisions() {
  const rows = text === null ? [] : [...list.rows.values()];
  const count = (decision) => rows.filter((row) => row.decision === decision).length;
  const [accepted, rejected] = [count("accept"), count("reject")];
  part("decided").textContent = accepted + rejected ? say("decided", { accepted, rejected }) : "";
  part("undo").disabled = !history.length;
  const isChanged = list.changed.length > 0;
  part("send").disabled = !queued && !isChanged;
  part("send").textContent = say(!queued ? "send" : isChanged ? "sendNext" : "next");
  part("export").hidden = text === null;
}

async function send() {
  await attempt(async () => {
    const rows = list.changed;
    const decisions = rows.map(({ label, decision, score, band }) => {
      return { label, decision: decision ?? "withdraw", ...(band === null ? {} : { score }) };
    });
    const who = part("who").value.trim();
    const body = { model: model?.id, document: { id: documentId(), text }, ...(who && { who }), decisions };
    const { stored } = await request("feedback", { body });
    rows.forEach((row, i) => (row.stored = decisions[i].decision === "withdraw" ? null : decisions[i].decision));
    clearError();
    tell(say("sent", { n: stored }));
    showDecisions();
  });
}

// Queue

/** Send what was decided on the document of the queue; false: it could not be sent, or the user stays. */
async function leave() {
  if (!list.changed.length) return true;
  if (!queued) return window.confirm(say("discard"));
  await send();
  return !list.changed.length;
}

/** The decisions that are shown are those of another document or person: all are to be sent. */
function forget() {
  for (const row of list.rows.values()) row.stored = null;
  showDecisions();
}

/** Do one thing after the other with documents of the queue. */
async function move(work) {
  if (moving) return;
  moving = true;
  try {
    await attempt(async () => {
      if ((await askName()) && (await leave())) await work();
    });
  } finally {
    moving = false;
  }
}

function openQueued(place) {
  return move(() => show(place));
}

function openNext() {
  return move(async () => {
    const place = await queue.next();
    if (place !== null) return show(place);
    await queue.refresh();
    tell(say("queueDone"));
  });
}

function openBefore() {
  return move(async () => queue.back !== undefined && show(queue.back));
}

async function show(place) {
  const found = await queue.take(place);
  if (NARROW.matches) part("waiting").open = false;
  startAnew(found.text, found.id, found);
  suggest();
  attempt(() => queue.refresh({ around: place }));
}

/** What people decided on the document of the queue before, and where they disagree; at first, one's own decisions are taken over. */
function showHistory(isFirst) {
  const { history: past, conflicts } = queued;
  const me = part("who").value.trim();
  const latest = new Map(past.map((one) => [JSON.stringify([one.label, one.who]), one]));
  const holding = [...latest.values()].filter((one) => one.decision !== "withdraw");
  for (const one of holding) if (!list.rows.has(one.label)) ask(one);
  if (isFirst) past.filter((one) => one.who === me).forEach(recall);
  for (const label of list.rows.keys()) {
    const said = holding.filter((one) => one.label === label && one.who !== me);
    list.say(label, said, conflicts.includes(label));
  }
  part("history").hidden = !past.length;
  part("history-count").textContent = past.length;
  const items = past.map((one) => {
    const when = element("time", { datetime: one.time, class: "pale" }, showTime(one.time));
    const words = fill(texts.past[one.decision], { who: one.who || say("nobody"), name: nameOf(one) });
    const takeBack = element(
      "button",
      { class: "quiet", "aria-label": say("takeBackName", { name: nameOf(one) }), onclick: () => decide(one.label, null) },
      say("takeBack"),
    );
    return element("li", {}, words, " ", when, ...(one.who === me && holding.includes(one) ? [" ", takeBack] : []));
  });
  part("past").replaceChildren(...items);
}

/** Take over a decision of this person that is stored, so that it can be undone. */
function recall({ label, title, decision }) {
  if (!list.rows.has(label)) ask({ label, title });
  const row = list.rows.get(label);
  history.push([label, row.decision]);
  list.decide(label, decision === "withdraw" ? null : decision);
  row.stored = row.decision;
}

/** The name under which decisions are kept, asked for once; false: there is none. */
async function askName() {
  const dialog = part("name");
  if (part("who").value.trim()) return true;
  part("name-value").value = dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "ok") return false;
  part("who").value = part("name-value").value.trim();
  rememberName();
  return part("who").value !== "";
}

function rememberName() {
  try {
    localStorage.setItem(NAME, part("who").value.trim());
  } catch {
    // a browser that keeps nothing asks again
  }
}

function recallName() {
  try {
    part("who").value = localStorage.getItem(NAME) ?? "";
  } catch {
    // as above
  }
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
  await attempt(async () => showFound(await request(`labels?${parameters}`, { signal }), query));
}

/** The labels found, and last, unless it is one of them, that the query is proposed as a heading; null: nothing. */
function showFound(answer, query) {
  const same = (name) => name?.toLowerCase() === query.toLowerCase();
  options = answer === null ? [] : [...answer];
  if (answer && !answer.some(({ label, title }) => same(label) || same(title))) options.push({ proposed: query });
  found.hidden = answer === null;
  search.setAttribute("aria-expanded", options.length > 0);
  const items = options.map((one, i) =>
    element(
      "li",
      { role: "option", id: `found-${i}`, onpointerdown: (event) => (event.preventDefault(), pick(i)) },
      ...(one.proposed ? [say("propose", { name: one.proposed })] : showLabel(one)),
    ),
  );
  if (answer?.length === 0) items.unshift(element("li", { class: "pale", role: "presentation" }, say("foundNone")));
  found.replaceChildren(...items);
  highlight(answer?.length ? 0 : -1);
}

const showLabel = (one) => [
  element("span", { class: "title", dir: "auto" }, nameOf(one)),
  element("span", { class: "pale" }, [...(one.title ? [shorten(one.label)] : []), say("documents", { n: one.documents })].join(" · ")),
];

function highlight(number) {
  option = number;
  const items = [...found.querySelectorAll("[id]")];
  items.forEach((item, i) => item.setAttribute("aria-selected", i === option));
  items[option]?.scrollIntoView({ block: "nearest" });
  if (option < 0) search.removeAttribute("aria-activedescendant");
  else search.setAttribute("aria-activedescendant", `found-${option}`);
}

function pick(number) {
  const one = options[number];
  if (!one) return;
  search.value = "";
  showFound(null);
  if (one.proposed) return propose(one.proposed);
  if (!list.rows.has(one.label)) ask(one);
  list.open(one.label, { focus: true });
}

/** Send a heading that the vocabulary lacks to its editors. */
function propose(name) {
  return attempt(async () => {
    const who = part("who").value.trim();
    const body = { model: model?.id, document: { id: documentId(), text }, ...(who && { who }), name };
    const { proposed } = await request("proposals", { body });
    clearError();
    tell(say("proposed", { name: proposed }));
  });
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
  x: () => list.current !== null && decide(list.current, null),
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
  if (target.closest("input, textarea:not([readonly]), select")) return;
  const inList = target.closest("#bands") && { ArrowDown: KEYS.j, ArrowUp: KEYS.k }[key];
  const always = { "?": showHelp, ...(queue.queue && { n: openNext, p: openBefore, d: () => queue.seek() }) }[key];
  const does = always ?? (text !== null && (inList || KEYS[key]));
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
part("new").addEventListener("click", async () => (await leave()) && startAnew("", ""));
part("open").addEventListener("click", () => part("file").click());
part("file").addEventListener("change", ({ target }) => (openFiles([...target.files]), (target.value = "")));
part("model").addEventListener("change", ({ target }) => (choose(target.value), text !== null && suggest()));
part("undo").addEventListener("click", undo);
part("send").addEventListener("click", () => (queued ? openNext() : send()));
part("next").addEventListener("click", openNext);
part("back").addEventListener("click", openBefore);
part("name-cancel").addEventListener("click", () => part("name").close("cancel"));
part("who").addEventListener("change", () => {
  rememberName();
  if (queued && queue.place !== null) return void openQueued(queue.place);
  if (!queued) forget();
  if (queue.queue) attempt(() => queue.refresh());
});
part("document").addEventListener("change", forget);
part("help-open").addEventListener("click", showHelp);
for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => exportAs(button.dataset.export));
document.addEventListener("dragover", (event) => (event.preventDefault(), document.body.classList.add("dropping")));
document.addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  openFiles([...event.dataTransfer.files]);
});
window.addEventListener("beforeunload", (event) => list.changed.length && event.preventDefault());
recallName();
showSize();
attempt(start);
