"""What scorers alone take."""

from __future__ import annotations

from typing import Any

import pytest

from plant_cli.api import Choice, ScorerSpec, SilentReporter
from plant_cli.corpus.analyser import PLAIN
from plant_cli.planning import scorers
from plant_cli.registry import installed
from tests.inference.test_scorers import clinic


class Corpus:
    """A corpus of one split."""

    def __init__(self) -> None:
        self.train, self.labels = clinic(60)
        self.analyser = PLAIN

    def split(self, name: str) -> Any:
        return self.train


def test_all_grows_with_the_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorers, "SAMPLE", 20)
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in ("words", "linear")]
    corpus: Any = Corpus()
    found = scorers.plan_scorers(corpus, chosen, SilentReporter())
    assert found.measured
    assert found.seconds > 0
    assert found.memory["scorers"] > 0
    assert found.work == {"documents": 60, "labels": 4}
