/** Requests to the server that gave the page. The token is kept in memory only. */

import { fill, say, texts } from "./texts.js";

let token = "";
let asking = null;

/** An error in four parts: what, where, expected, todo. */
export class FourParts extends Error {
  constructor(parts) {
    super(parts.what);
    this.parts = parts;
  }

  static of(name, values) {
    return new FourParts(Object.fromEntries(Object.entries(texts.errors[name]).map(([part, text]) => [part, fill(text, values)])));
  }
}

/** What the server answers at api/PATH; asks for a token where it wants one. */
export async function request(path, { body, signal } = {}) {
  const url = new URL(`api/${path}`, document.baseURI);
  for (;;) {
    const used = token;
    const headers = { ...(body && { "Content-Type": "application/json" }), ...(used && { Authorization: `Bearer ${used}` }) };
    const sent = { method: body ? "POST" : "GET", headers, signal, cache: "no-store", body: body && JSON.stringify(body) };
    let response, answer;
    try {
      response = await fetch(url, sent);
      answer = await response.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw FourParts.of(response ? "answer" : "unreachable", { where: url.href, status: response?.status });
    }
    if (response.ok) return answer;
    if (response.status === 401 && (token !== used || (await askToken(used)))) continue;
    throw answer.error ? new FourParts(answer.error) : FourParts.of("answer", { where: url.href, status: response.status });
  }
}

/** Ask the user for a token, once for all requests that wait; false: there is none. */
function askToken(used) {
  const dialog = document.getElementById("token");
  const input = document.getElementById("token-value");
  asking ??= new Promise((resolve) => {
    document.getElementById("token-text").textContent = say(used ? "tokenWrong" : "tokenAsk");
    input.value = dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        asking = null;
        if (dialog.returnValue === "ok") token = input.value.trim();
        resolve(dialog.returnValue === "ok" && token !== "");
      },
      { once: true },
    );
    dialog.showModal();
    input.focus();
  });
  return asking;
}
