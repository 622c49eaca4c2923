"""How often each command reads the texts of a corpus, splits them into words, and tokenises
them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from plant_backbones.tiny import TinyBackbone

from plant_cli.api import Request
from plant_cli.data.tables import collect
from plant_cli.data.word_analysis import WordAnalyser
from plant_cli.registry import installed
from plant_cli.relevance.relevance_table import load_relevance
from plant_cli.runs.runner import RequestRunner
from tests.clinic import Clinic

READ = {
    "mig": {"train": 1, "validation": 1, "test": 1},
    "pretrain-attn": {"train": 1, "validation": 1},
    "finetune": {"train": 1, "validation": 1},
    "predict": {"test": 1},
    "eval": {"test": 1},  # for gold spans
}
SPLIT = {
    "mig": {"train": 1},
    "pretrain-attn": {"validation": 1},
    "predict": {"test": 1},
    "eval": {"test": 2},
}
TOKENISED = {
    "pretrain-attn": {"train": 1, "validation": 1},
    "predict": {"test": 1},
    "eval": {"test": 2},
}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """How often each split was read, and how often each text was split into words and tokenised."""
    read, split, tokenised = Counter[str](), Counter[str](), Counter[str]()
    spell, tokenize = WordAnalyser.spell, TinyBackbone.tokenize

    def count(frame: pl.LazyFrame, where: str, *given: Any) -> pl.DataFrame:
        found = collect(frame, where, *given)
        if "text" in found.columns and found.height:
            read[where.split()[1]] += 1
        return found

    monkeypatch.setattr("plant_cli.data.documents.collect", count)
    monkeypatch.setattr(
        WordAnalyser, "spell", lambda analyser, text: split.update([text]) or spell(analyser, text)
    )
    monkeypatch.setattr(
        TinyBackbone,
        "tokenize",
        lambda backbone, texts: tokenised.update(texts) or tokenize(backbone, texts),
    )
    return {"read": read, "split": split, "tokenised": tokenised}


def test_a_text_is_read_once_a_command_and_split_and_tokenised_once_a_run(
    trained: Clinic, counts: dict[str, Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    monkeypatch.setattr(
        "plant_cli.relevance.relevance_table.load_relevance",
        lambda *given: loads.append(stage) or load_relevance(*given),
    )
    found: dict[str, dict[str, Any]] = {name: {} for name in counts}
    for stage in READ:
        trained.run(stage)
        for name, counted in counts.items():
            found[name][stage] = dict(counted)
            counted.clear()
    corpus = (
        RequestRunner(Request(registry=installed(), run_path=trained.path)).open("suggest").corpus()
    )
    texts = {name: corpus.split(name).texts for name in corpus}
    assert found["read"] == READ
    assert [stage for stage in loads if stage != "eval"] == ["pretrain-attn", "finetune"], (
        "relevance is loaded once"
    )
    for name, wanted in (("split", SPLIT), ("tokenised", TOKENISED)):
        for stage, counted in found[name].items():
            often = {split: {counted.get(text, 0) for text in texts[split]} for split in texts}
            assert {
                split: max(numbers) for split, numbers in often.items() if numbers != {0}
            } == wanted.get(stage, {}), (name, stage)
