"""Scorers as they were fitted, kept until all are: a stage that was stopped goes on after the
last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from plant_cli.api import Choice, ScorerSpec
from plant_cli.api.errors import ArtefactError
from plant_cli.api.options import Options
from plant_cli.data.files import hash_json, remove
from plant_cli.data.tensors import pack_matrix, read_tensors, unpack_matrix, write_tensors
from plant_cli.runs.damage import CHECKPOINT_MARK, is_whole, write_mark
from plant_cli.scoring.fused_scorers import NamedScorer
from plant_cli.scoring.sparse_scores import SparseScores

KEPT_PREFIX, FITTED_ARRAYS = "scorer-", "fitted.safetensors"
LEARNED, VIEW = "scorer.", "left_out"  # what names of arrays begin with
Fitted = tuple[NamedScorer, list[SparseScores]]
"""A scorer, with its scores of documents that were left out."""


@dataclass(frozen=True, kw_only=True)
class KeptScorers:
    """A folder for each scorer that is fitted, with the hash of all that it follows from."""

    folder: Path  # checkpoints of the stage
    origin: Mapping[str, Any]  # hashes of corpus, labels and words, and the seed
    warn: Callable[[str], None]  # told of damaged files, which are made again

    def _place(self, name: str) -> Path:
        return self.folder / f"{KEPT_PREFIX}{name}"

    def _key(self, chosen: Choice) -> str:
        return hash_json([dict(self.origin), chosen.name, chosen.options])

    def find(self, spec: ScorerSpec, options: Options) -> Fitted | None:
        """A scorer that was kept, fitted with these options on what it would be fitted on now."""
        place, chosen = (
            self._place(spec.name),
            Choice(name=spec.name, options=options.model_dump(mode="json")),
        )
        what = f"the scorer '{spec.name}' as it was fitted"
        if not is_whole(place / CHECKPOINT_MARK, what, self.warn):
            return None
        try:
            tensors, marks = read_tensors(place / FITTED_ARRAYS, what, "", framework="np")
            if marks.get("key") != self._key(chosen):
                return None
            views = [
                SparseScores.of(unpack_matrix(f"{VIEW}{number}", tensors))
                for number in range(int(marks["views"]))
            ]
            learned = {
                name.removeprefix(LEARNED): array
                for name, array in tensors.items()
                if name.startswith(LEARNED)
            }
            return NamedScorer(
                chosen=chosen, scorer=spec.load(options, learned), views=len(views)
            ), views
        except (ArtefactError, KeyError, ValueError) as error:
            self.warn(f"{what} cannot be read ({error}): it is fitted again")
            return None

    def keep(self, fitted: Fitted, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep a fitted scorer of these arrays."""
        if self.folder.is_symlink():  # it belongs to another process of the group
            return
        scorer, views = fitted
        place = self._place(scorer.name)
        remove(place)
        place.mkdir(parents=True)
        named = {f"{LEARNED}{name}": array for name, array in tensors.items()}
        for number, view in enumerate(views):
            named |= pack_matrix(f"{VIEW}{number}", view.matrix)
        write_tensors(
            place / FITTED_ARRAYS,
            named,
            {"key": self._key(scorer.chosen), "views": str(len(views))},
            framework="np",
        )
        write_mark(place / CHECKPOINT_MARK)

    def drop(self) -> None:
        """Remove what was kept: the stage has the scorers now."""
        if self.folder.is_symlink():
            return
        for place in self.folder.glob(f"{KEPT_PREFIX}*"):
            remove(place)
        with suppress(OSError):  # checkpoints of a network are there, or nothing was kept
            self.folder.rmdir()
