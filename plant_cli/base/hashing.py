"""SHA-256 of files, values and lists of strings: how artefacts prove that they belong together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_json(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal; the order of keys does not matter, NaN raises `ValueError`."""
    return hashlib.sha256(_write_json(value).encode("utf-8")).hexdigest()


def hash_strings(strings: Iterable[str]) -> str:
    """SHA-256 of an ordered list of strings, in hexadecimal; each is preceded by its length, so that ["ab"] is not ["a", "b"]."""
    digest = StringsHash()
    digest.add(strings)
    return digest.hexdigest()


class StringsHash:
    """`hash_strings` of a list that comes in parts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, strings: Iterable[str]) -> None:
        """Take the next strings."""
        for string in strings:
            data = string.encode("utf-8", errors="surrogatepass")
            self._digest.update(len(data).to_bytes(8, "little"))
            self._digest.update(data)

    def hexdigest(self) -> str:
        """The hash of all strings so far, in hexadecimal."""
        return self._digest.hexdigest()


class ListHash:
    """`hash_json` of a list that comes in parts."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256(b"[")
        self._begun = False

    def add(self, values: Sequence[Any]) -> None:
        """Take the next values."""
        if values:
            self._digest.update((("," if self._begun else "") + _write_json(values)[1:-1]).encode("utf-8"))
            self._begun = True

    def hexdigest(self) -> str:
        """The hash of the list so far, in hexadecimal."""
        whole = self._digest.copy()
        whole.update(b"]")
        return whole.hexdigest()


def _write_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
