/** Files to keep: the record of a text with all its labels, and the decisions as `plant review import` reads them. */

import { strongestWords } from "./marks.js";
import { showWeight } from "./texts.js";

const BEGINNING = 300; // characters of the text in a sheet
const EVIDENCE = 5; // words

/** What a spreadsheet would take for a formula begins with an apostrophe; control characters are written out. */
export function guardCell(value) {
  const text = String(value ?? "");
  const shown = text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, (sign) => `\\x${sign.charCodeAt(0).toString(16).padStart(2, "0")}`);
  const number = /^[-+]?[\d.,]+(e[-+]?\d+)?%?$/i;
  return /^[=+\-@\t\r]/.test(text) && !number.test(text) ? `'${shown}` : shown;
}

export function writeCsv(rows) {
  const lines = [Object.keys(rows[0]), ...rows.map(Object.values)];
  const quote = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return `\ufeff${lines.map((line) => line.map((cell) => quote(guardCell(cell))).join(",")).join("\r\n")}\r\n`;
}

/** A row for each label: doc_id, heading, text, label, title, score, band, decision, evidence. */
export function reviewRows({ id, text, labels }) {
  const heading = text.trim().split("\n", 1)[0].slice(0, BEGINNING);
  return labels.map(({ label, title, score, band, decision, explanation }) => {
    const words = strongestWords(text, explanation?.parts.flatMap((part) => part.words) ?? [], EVIDENCE);
    const evidence = words.map(({ word, weight }) => `${word} ${showWeight(weight)}`).join(", ");
    return {
      doc_id: id,
      heading,
      text,
      label,
      title: title ?? "",
      score: score ?? "",
      band: band ?? "",
      decision: decision ?? "",
      evidence,
    };
  });
}

/** The content of a file by its name. */
export const WRITERS = {
  "record.json": (record) => `${JSON.stringify(record, null, 1)}\n`,
  "record.csv": (record) => writeCsv(reviewRows(record).map((row) => ({ ...row, text: row.text.slice(0, BEGINNING) }))),
  "feedback.jsonl": (record) => {
    const { who, time, model } = record;
    const decided = reviewRows(record).filter(({ decision }) => decision);
    return decided.map((row) => `${JSON.stringify({ ...row, who, time, model })}\n`).join("");
  },
};

/** The id of a text that has none: equal texts have equal ids. */
export function textId(text) {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    one = Math.imul(one ^ text.charCodeAt(i), 2654435761);
    other = Math.imul(other ^ text.charCodeAt(i), 1597334677);
  }
  return [one, other].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
}

export function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
