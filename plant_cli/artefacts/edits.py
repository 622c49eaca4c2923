"""What a person changed by hand: words denied or allowed for a label, kept beside the relevance in `edits.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from plant_cli.api.errors import ArtefactError, first_line
from plant_cli.base.files import replacing

FILE = "edits.yaml"


@dataclass(frozen=True, kw_only=True)
class LabelEdits:
    """The edits of one label.

    Args:
        deny: words whose relevance is taken away.
        allow: words with the relevance in [0, 1] that they get instead of their own.
    """

    deny: frozenset[str] = frozenset()
    allow: Mapping[str, float] = field(default_factory=dict)

    def then(self, later: LabelEdits) -> LabelEdits:
        """These edits, and later ones that win where both name a word."""
        return LabelEdits(
            deny=(self.deny - later.allow.keys()) | later.deny,
            allow={w: r for w, r in self.allow.items() if w not in later.deny} | dict(later.allow),
        )


def read_edits(folder: Path) -> dict[str, LabelEdits]:
    """The edits in a folder by label; none where there is no file.

    Raises:
        ArtefactError: the file is not what `plant mig edit` writes.
    """
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        # The base loader keeps every scalar a string: a word `no` and a label `1e4` stay what they are.
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader) or {}
        return {label: _label_edits(entry) for label, entry in raw.items()}
    except (yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ArtefactError(
            f"the edits cannot be read: {first_line(error)}",
            where=str(path),
            expected="for each label `deny: [word, …]` and `allow: {word: relevance from 0 to 1}`",
            todo="correct the file, or start again with `plant mig edit --clear`",
        ) from error


def write_edits(folder: Path, edits: Mapping[str, LabelEdits]) -> None:
    """Write the edits of all labels, atomically; a label without any is left out, and without any label the file goes."""
    entries = {label: _plain(entry) for label, entry in sorted(edits.items()) if entry.deny or entry.allow}
    path = folder / FILE
    if not entries:
        path.unlink(missing_ok=True)
        return
    text = yaml.safe_dump(entries, allow_unicode=True, sort_keys=False)
    if "\x85" in text:  # a line end in YAML, read back as a space unless it is escaped
        text = yaml.safe_dump(entries, sort_keys=False)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def set_aside(folder: Path) -> Path | None:
    """Forget all edits; returns the file that keeps the former ones, None where there were none.

    It stands beside the folder: in it, it would count as something that later stages were made from.
    """
    path, kept = folder / FILE, folder.with_name(f"{folder.name}.{FILE}.bak")
    if not path.exists():
        return None
    path.replace(kept)
    return kept


def _label_edits(entry: Mapping[str, Any]) -> LabelEdits:
    unknown = entry.keys() - {"deny", "allow"}
    deny, allow = entry.get("deny", []), entry.get("allow", {})
    if unknown or not isinstance(deny, list):
        raise ValueError(f"unexpected {', '.join(unknown) or 'deny: it must be a list'}")
    relevance = {word: float(value) for word, value in allow.items()}
    outside = {word: value for word, value in relevance.items() if not 0.0 <= value <= 1.0}
    if outside:
        raise ValueError(f"relevance outside 0 to 1: {outside}")
    return LabelEdits(deny=frozenset(deny), allow=relevance)


def _plain(entry: LabelEdits) -> dict[str, Any]:
    lists: dict[str, Any] = {"deny": sorted(entry.deny), "allow": dict(sorted(entry.allow.items()))}
    return {key: value for key, value in lists.items() if value}
