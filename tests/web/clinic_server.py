"""A small server that speaks as `plant serve` does: labels of a made-up clinic, scored by the
words of a text.
"""

from __future__ import annotations

import json
import math
import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import plant_serving

PAGE = Path(plant_serving.__path__[0]) / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
    "'self' data:"
)
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
TITLES = {
    "J20": "Acute bronchitis",
    "J18": "Pneumonia",
    "J45": "Asthma",
    "I10": "Hypertension",
    "E11": "Type 2 diabetes",
    "M54": "Back pain",
}
WORDS = {  # log-odds that a word adds to labels
    "cough": {"J20": 2.4, "J18": 1.1, "J45": 0.6},
    "bronchitis": {"J20": 3.0},
    "fever": {"J18": 1.9, "J45": -0.8},
    "wheezing": {"J45": 2.1, "J20": 0.4},
    "pressure": {"I10": 3.2},
}
BASE, ASSIGN, REVIEW = -3.0, 0.5, 0.1
TEXT = (
    "Cough and fever 🤒 for three days.\nKnown high blood pressure. Acute bronchitis, no wheezing."
)


def explain(text: str, label: str) -> dict[str, Any]:
    """An explanation: half of each word's log-odds by the network, half by the scorer `words`."""
    found = [
        (match, WORDS.get(match[0].lower(), {}).get(label, 0.0))
        for match in re.finditer(r"\w+", text)
    ]
    words = [
        {"start": match.start(), "end": match.end(), "weight": weight / 2}
        for match, weight in found
        if weight
    ]
    half = sum(word["weight"] for word in words)
    notes = {"network": "", "words": f"{len(words)} words of {TITLES[label]}"}
    parts = [
        {"name": name, "log_odds": half, "note": note, "words": words}
        for name, note in notes.items()
    ]
    log_odds = BASE + 2 * half
    score = 1 / (1 + math.exp(-min(max(log_odds, -30), 30)))
    return {
        "label": label,
        "title": TITLES[label],
        "score": score,
        "threshold": ASSIGN,
        "log_odds": log_odds,
        "base": BASE,
        "parts": parts,
    }


class Clinic(BaseHTTPRequestHandler):
    """One request. The server has `seen` (method, path, body), `token` and `error` (status,
    four parts) of the next request.
    """

    server: Any

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        path, _, query = self.path.removeprefix("/folder").partition("?")
        self.server.seen.append((path, body))
        if not path.startswith("/api/"):
            name = "index.html" if path == "/" else path.removeprefix("/page/")
            return self._send(200, (PAGE / name).read_bytes(), KINDS[Path(name).suffix])
        status, answer = 200, None
        if self.server.token and self.headers["Authorization"] != f"Bearer {self.server.token}":
            status, answer = (
                401,
                {
                    "error": {
                        "what": "no access",
                        "where": path,
                        "expected": "a token",
                        "todo": "ask",
                    }
                },
            )
        elif self.server.error and path != "/api/models":
            status, answer = self.server.error[0], {"error": self.server.error[1]}
            self.server.error = None
        else:
            answer = getattr(self, path.removeprefix("/api/"))(
                body or {name: values[0] for name, values in parse_qs(query).items()}
            )
        return self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": POLICY,
        }
        for name, value in {**headers, "X-Content-Type-Options": "nosniff"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass

    def models(self, _: Any) -> Any:
        figures = {
            "labels": len(TITLES),
            "documents": 1200,
            "parts": ["network", "words"],
            "target": "precision=0.8",
            "right": 0.83,
            "recall": 0.91,
            "network": True,
        }
        return [{"id": name, "title": f"Clinic {name}", **figures} for name in self.server.models]

    def queues(self, _: Any) -> Any:
        return []

    def suggest(self, body: Any) -> Any:
        (text,) = body["texts"]
        scores = {label: explain(text, label)["score"] for label in TITLES if label != "M54"}
        bands = {
            label: "assign" if score >= ASSIGN else "review" if score >= REVIEW else "reject"
            for label, score in scores.items()
        }
        rows = [
            {
                "label": label,
                "title": TITLES[label],
                "score": score,
                "threshold": ASSIGN,
                "band": bands[label],
            }
            for label, score in sorted(scores.items(), key=lambda pair: -pair[1])
        ]
        note = (
            {}
            if any(word in text.lower() for word in WORDS)
            else {"note": "The model knows no word of this text."}
        )
        return {"model": body["model"], "results": [{"suggestions": rows, **note}]}

    def explain(self, body: Any) -> Any:
        return {
            "model": body["model"],
            "explanations": [explain(body["text"], label) for label in body["labels"]],
        }

    def labels(self, query: Any) -> Any:
        found = [
            label
            for label, title in TITLES.items()
            if query["q"].lower() in f"{label} {title}".lower()
        ]
        return [{"label": label, "title": TITLES[label], "documents": 7} for label in found]

    def feedback(self, body: Any) -> Any:
        self.server.feedback.append(body)
        return {"stored": len(body["decisions"])}
