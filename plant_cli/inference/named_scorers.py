"""One scorer under its name, and what becomes of it when it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import Choice, ComponentError, Documents, PlantError, Reason, Scorer
from plant_cli.lexical.scores import Scores

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class NamedScorer:
    """A scorer under its name.

    Args:
        chosen: its name and all its options.
        scorer: fitted on train.
        views: views that it takes of a document.
    """

    chosen: Choice
    scorer: Scorer
    views: int

    @property
    def name(self) -> str:
        """What it is called."""
        return self.chosen.name

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """What it says for some labels of one document; `ScorerError` if it fails."""
        return ask(self.name, "cannot say why", lambda: list(self.scorer.explain(document, labels)))

    def score(self, documents: Documents, labels: int) -> list[Scores]:
        """Scores of documents under each view.

        Raises:
            ComponentError: the scorer fails, or its scores are not what was promised.
        """
        if not len(documents):
            return [Scores(matrix=csr_array(np.zeros((0, labels), dtype=np.float32)), floor=np.zeros(0, dtype=np.float32))] * self.views
        return check_scores(self.name, lambda: self.scorer.score(documents), (len(documents), labels), self.views)


def check_scores(name: str, score: Callable[[], Sequence[csr_array]], shape: tuple[int, int], views: int | None = None) -> list[Scores]:
    """What a scorer says, if it is what was promised.

    Args:
        name: of the scorer.
        score: asks it.
        shape: documents and labels.
        views: that it must take; None: any number from 1 on.

    Raises:
        ScorerError: it fails, or says something else.
    """
    found = ask(name, "fails", lambda: [Scores.of(view) for view in score()])
    if not found or (views is not None and len(found) != views):
        raise ScorerError(name, f"takes {len(found)} views of documents, not {views or 'one or more'}")
    for view in found:
        if view.matrix.shape != shape:
            raise ScorerError(name, f"gives scores {view.matrix.shape}, not {shape} (documents, labels)")
        if not np.isfinite(view.matrix.data).all():
            raise ScorerError(name, "gives scores that are not numbers")
    return found


class ScorerError(ComponentError):
    """A scorer fails.

    Args:
        name: of the scorer.
        what: it does.
    """

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"the scorer '{name}' {what}",
            where=f"option scorers, '{name}'",
            expected="finite scores of every document for the labels of train",
            todo=f"train without it (`plant finetune --scorers` with other names); while training, --allow-missing leaves '{name}' out",
        )
        self.name = name


def ask(name: str, what: str, call: Callable[[], Answer]) -> Answer:
    """What a scorer answers.

    Args:
        name: of the scorer.
        what: is said if it fails, such as "fails".
        call: asks it.

    Raises:
        ScorerError: it fails.
    """
    try:
        return call()
    except (PlantError, MemoryError):
        raise
    except Exception as error:
        raise ScorerError(name, f"{what}: {type(error).__name__}: {error}") from error
