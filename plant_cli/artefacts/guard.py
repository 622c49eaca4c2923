"""One guard for what belongs together: format, label order and tokenizer of every file of a run.

A file with a label axis carries the hash of the ordered label ids, a file with a token axis that of the tokenizer. `stamp` makes
these marks where a file is written, `require_same` compares them where it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plant_cli.api.errors import ArtefactError

FORMAT = 1
"""Of the run folder and all its files; raised when the meaning of any of them changes."""

HASHES = {"label_hash": "label order", "tokenizer_hash": "tokenizer"}
SHOWN = 12  # characters of a hash in messages


def stamp(*, labels: str | None = None, tokenizer: str | None = None) -> dict[str, str]:
    """The marks of a file, as metadata of Parquet and safetensors or as keys of JSON.

    Args:
        labels: hash of the ordered label ids; None for a file without a label axis.
        tokenizer: hash of the tokenizer; None for a file without a token axis.
    """
    hashes = {"label_hash": labels, "tokenizer_hash": tokenizer}
    return {"format": str(FORMAT), **{name: value for name, value in hashes.items() if value is not None}}


def require_same(
    found: Mapping[str, Any],
    *,
    path: Path,
    what: str,
    todo: str,
    labels: str | None = None,
    tokenizer: str | None = None,
    against: Path | str = "the run's corpus",
) -> None:
    """Refuse a file of another format, label order or tokenizer.

    Args:
        found: the marks that the file carries.
        path: the file.
        what: what the file holds, with its article: "the relevance".
        todo: what to do about a mismatch.
        labels: hash of the ordered label ids that are wanted; None: not compared.
        tokenizer: hash of the tokenizer that is wanted; None: not compared.
        against: where the wanted hashes come from, for the message.

    Raises:
        ArtefactError: with both hashes and both places.
    """
    written = str(found.get("format", "none"))
    if written != str(FORMAT):
        raise ArtefactError(
            f"{what} has format {written[:SHOWN]}",
            where=str(path),
            expected=f"format {FORMAT}, which this version of plant reads",
            todo=f"{todo}, or use the version of plant that wrote it",
        )
    for key, wanted in (("label_hash", labels), ("tokenizer_hash", tokenizer)):
        mark = str(found.get(key, "none"))
        if wanted is not None and mark != wanted:
            raise ArtefactError(
                f"{what} was made for another {HASHES[key]}",
                where=f"{path} ({mark[:SHOWN]}) against {against} ({wanted[:SHOWN]})",
                expected=f"one {HASHES[key]} in the whole run",
                todo=todo,
            )
