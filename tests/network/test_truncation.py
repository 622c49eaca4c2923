"""What lies beyond the backbone's limit, counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from plant_cli.api import DataSection, Evidence, SilentReporter
from plant_cli.data.prepare import prepare
from plant_cli.network.cuts import Cut, CutEvidence, cut_summary, measure_cut
from plant_cli.network.reading import tokenize

TEXTS = ["one two three four five six", "six", "a b c d"]
SPANS = [
    (0, "A", 0, 3),
    (0, "A", 14, 18),  # "four" lies beyond, but A has another span
    (0, "B", 14, 18),  # B has none
    (0, "C", 8, 18),  # "three four" is read in part
    (0, "D", 8, 13),  # ends with the last token read
    (0, "E", 13, 18),  # begins where that ends
    (1, "B", 0, 3),
    (2, "F", 6, 7),  # "d", a text that tiny cuts by one token
    (2, "F", 0, 7),
]


def evidence_of(spans: list[tuple[int, str, int, int]]) -> Evidence:
    return Evidence(
        rows=np.array([row for row, *_ in spans], dtype=np.int64),
        labels=[label for _, label, *_ in spans],
        spans=np.array([span for _, _, *span in spans], dtype=np.int64).reshape(-1, 2),
    )


def test_spans_and_labels_beyond_the_limit(small_network: Callable[..., Any]) -> None:
    reporter = SilentReporter()
    tokens = tokenize(small_network(max_tokens=3), TEXTS, reporter, "train", evidence=evidence_of(SPANS))
    cut = measure_cut(tokens, evidence_of(SPANS))
    assert cut.evidence == CutEvidence(spans=9, lost=4, in_part=2, labels=7, labels_lost=2)
    assert "of 9 gold evidence spans 4 lie beyond and 2 reach beyond; of 7 labels with evidence 2 have none" in reporter.warnings[0]
    assert "tokens beyond (36.4% of all) are not read; of 9" in reporter.warnings[0]


def test_windows_lose_nothing(small_network: Callable[..., Any]) -> None:
    evidence = evidence_of([(0, "A", 0, 4), (0, "B", 295, 299)])
    tokens = tokenize(small_network(window=8, max_tokens=64), ["word " * 60], SilentReporter(), "test")
    assert measure_cut(tokens, evidence).evidence == CutEvidence(spans=2, lost=0, in_part=0, labels=2, labels_lost=0)
    tokens = tokenize(small_network(window=8, max_tokens=59), ["word " * 60], SilentReporter(), "test")  # the last of them is dropped
    assert measure_cut(tokens, evidence).evidence == CutEvidence(spans=2, lost=1, in_part=0, labels=2, labels_lost=1)


def test_a_document_of_which_nothing_is_read_loses_all(small_network: Callable[..., Any]) -> None:
    tokens = tokenize(small_network(max_tokens=3), ["a b c d", ""], SilentReporter(), "test", evidence=evidence_of([]))
    assert measure_cut(tokens, evidence_of([])).evidence == CutEvidence(spans=0, lost=0, in_part=0, labels=0, labels_lost=0)
    assert measure_cut(tokens).evidence is None


def test_what_is_recorded_goes_by_split(small_network: Callable[..., Any]) -> None:
    network = small_network(max_tokens=3)
    splits = {"train": ["a b c d"], "test": []}
    cuts = {name: measure_cut(tokenize(network, texts, SilentReporter(), name)) for name, texts in splits.items()}
    plain = {"documents_cut": {"train": 1.0, "test": 0.0}, "tokens_dropped": {"train": 0.25, "test": 0.0}}
    assert cut_summary(cuts) == plain
    counts = CutEvidence(spans=5, lost=1, in_part=2, labels=4, labels_lost=0)
    given = {"train": Cut(documents=1.0, tokens=0.25, evidence=counts), "test": Cut()}
    assert cut_summary(given) == {**plain, "evidence_cut": {"train": asdict(counts)}}


@pytest.mark.corpora
def test_evidence_of_real_cases(corpora: Path, tmp_path: Path) -> None:
    from plant_backbones import TinyOptions
    from plant_backbones.tiny import TinyBackbone
    from plant_datasets.table_corpora import load as load_files

    section = DataSection(path=str(corpora / "codiesp"))
    reporter = SilentReporter()
    corpus = prepare(load_files(section), section, tmp_path, reporter)
    assert not [warning for warning in reporter.warnings if "evidence" in warning]
    found = {}
    for name in corpus:
        split = corpus.split(name)
        assert split.evidence is not None
        pairs = set(zip(split.evidence.rows.tolist(), split.evidence.labels, strict=True))
        assert len(pairs) == split.gold.nnz + split.unseen.nnz  # every label of a document has a span
        tokens = TinyBackbone(TinyOptions(max_tokens=256, hidden=8, heads=1)).tokenize(split.texts)
        found[name] = measure_cut(tokens, split.evidence).evidence
    rows = pl.read_parquet(corpora / "codiesp" / "evidence.parquet")
    distinct = rows.select("doc_id", "label", "start", "end").n_unique()  # annotations in several pieces share some of them
    assert sum(counts.spans for counts in found.values() if counts) == distinct == 16213
    test = found["test"]
    assert test is not None
    assert 0 < test.labels_lost < test.labels
    assert 0 < test.in_part < test.lost < test.spans
