"""SHA-256 of files, values and lists of strings: how artefacts prove that they belong together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_json(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal; the order of keys does not matter, NaN raises `ValueError`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def hash_strings(strings: Iterable[str]) -> str:
    """SHA-256 of an ordered list of strings, in hexadecimal; each is preceded by its length, so that ["ab"] is not ["a", "b"]."""
    digest = hashlib.sha256()
    for string in strings:
        data = string.encode("utf-8", errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
