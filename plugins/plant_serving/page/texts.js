/** The texts of the page (texts.LANG.json, LANG is that of index.html), numbers as people write them, and elements made of them. */

const language = document.documentElement.lang;
const plural = new Intl.PluralRules(language);
const whole = new Intl.NumberFormat(language);
const hundredths = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const signed = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2, signDisplay: "exceptZero" });
const moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
const list = new Intl.ListFormat(language, { type: "unit", style: "short" });

export const texts = await (await fetch(new URL(`texts.${language}.json`, import.meta.url))).json();

/** A text with its values put in: say("size", { n: 3 }); the number `n` chooses between singular and plural. */
export function say(key, values = {}) {
  const found = texts[key];
  const pattern = typeof found === "string" ? found : (found[plural.select(values.n)] ?? found.other);
  return fill(pattern, values);
}

export function fill(pattern, values) {
  return pattern.replace(/\{(\w+)\}/g, (_, name) => (name === "n" ? whole.format(values.n) : (values[name] ?? "")));
}

export const showCount = (count) => whole.format(count);
export const showScore = (score) => (score > 0 && score < 0.01 ? `<${hundredths.format(0.01)}` : hundredths.format(score));
export const showWeight = (weight) => signed.format(weight).replace("-", "−"); // a minus, not a hyphen
export const showList = (items) => list.format(items);
export const showTime = (time) => (Number.isNaN(Date.parse(time)) ? time : moment.format(new Date(time)));
/** The last part of an address, or the id as it is. */
export const shorten = (label) => (/^https?:/.test(label) ? label.split(/[/#]/).at(-1) || label : label);
export const nameOf = ({ label, title }) => title || shorten(label);

/** An element: element("p", { class: "note", hidden: true }, "text", child). Data become text nodes, never markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Put the texts into the elements of index.html that name one. */
export function fillTexts() {
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = say(node.dataset.text);
  for (const node of document.querySelectorAll("[data-aria]")) node.setAttribute("aria-label", say(node.dataset.aria));
  for (const node of document.querySelectorAll("[data-placeholder]")) node.placeholder = say(node.dataset.placeholder);
}
