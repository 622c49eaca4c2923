"""The stage `mig` on a corpus in memory."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import plant_signals as signals
import polars as pl
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array

from plant_cli.api import (
    Choice,
    ComponentError,
    Counts,
    Interrupted,
    MachineSection,
    NoOptions,
    SignalSpec,
    Split,
    SplitName,
)
from plant_cli.commands.mig import run
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import PLAIN, WordAnalyser
from plant_cli.registry import Registry
from plant_cli.relevance import spooling as spooled_terms
from plant_cli.relevance.engine import bind_signal
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.relevance.relevance_table import load_relevance
from plant_cli.testing.contexts import make_context

TEXTS = [
    "Fever and cough!",
    "fever, chills and cough",
    "a broken arm",
    "ARM and leg; broken",
    "fever and leg",
]
GOLD = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]]
LABELS = LabelTable(
    ids=["flu", "trauma"], titles=["Influenza with cough", "Broken bones"], train_counts=[3, 2]
)


@dataclass
class MemoryCorpus:
    """A corpus whose other splits answer only if the test lets them."""

    texts: dict[SplitName, list[str]]
    asked: list[str] = field(default_factory=list)
    labels: LabelTable = LABELS
    data_hash: str = "d"
    analyser: WordAnalyser = PLAIN
    gold: list[list[int]] = field(default_factory=lambda: GOLD)

    @property
    def sizes(self) -> dict[SplitName, int]:
        return {name: len(texts) for name, texts in self.texts.items()}

    def split(self, name: SplitName) -> Split:
        self.asked.append(name)
        texts = self.texts[name]
        gold = csr_array(self.gold[: len(texts)])
        return Split(
            name=name,
            doc_ids=[str(i) for i in range(len(texts))],
            texts=texts,
            gold=gold,
            unseen=csr_array((len(texts), 0)),
        )

    def gold_labels(self, name: SplitName) -> Split:
        return self.split(name)

    def stream(self, name: SplitName) -> Iterator[Split]:
        yield self.split(name)

    def has_split(self, name: SplitName) -> bool:
        return name in self.texts

    def __iter__(self) -> Iterator[SplitName]:
        return iter(self.texts)


read = spooled_terms.SpooledTerms.read


def context_of(folder: Path, corpus: MemoryCorpus, *, stopping: bool = False) -> Any:
    registry = Registry()
    registry.register(signals, name="signals")
    return make_context(
        folder,
        components=registry,
        corpus=corpus,
        machine=MachineSection(device="cpu", threads=2),
        stopping=stopping,
    )


@pytest.fixture
def context(tmp_path: Path) -> Any:
    return context_of(tmp_path / "mig", MemoryCorpus({"train": TEXTS}))


def kept_words(context: Any) -> dict[str, list[str]]:
    rows = pl.read_parquet(context.folder / "mig.parquet")
    return {label: rows.filter(label=label)["word"].to_list() for label in LABELS.ids}


def test_finds_the_words_that_tell(context: Any) -> None:
    result = run(context, MigOptions())
    assert kept_words(context) == {
        "flu": ["fever", "cough", "and"],
        "trauma": ["arm", "broken", "leg"],
    }
    table = load_relevance(context.folder, LABELS.hash)
    assert table.words == ("and", "fever", "arm", "broken", "cough", "leg")
    assert table.matrix[0, 1] == 1.0
    value = pl.read_parquet(context.folder / "mig.parquet")["value"][0]
    assert value == pytest.approx(
        -0.6 * math.log(0.6) - 0.4 * math.log(0.4)
    )  # the word is the label: its whole entropy
    assert result.next_step == "plant pretrain-attn"
    assert result.summary == {
        "labels": 2,
        "labels without words": 0,
        "documents": 5,
        "words": 6,
        "kept": 6,
        "median per label": 3,
    }
    assert [row[:3] for row in result.tables[1].rows] == [
        ["trauma", "Broken bones", 2],
        ["flu", "Influenza with cough", 3],
    ]
    assert result.tables[1].rows[0][3] == "arm, broken, leg"


def test_reads_training_documents_only(tmp_path: Path) -> None:
    """The corpus is asked for train alone, and other test texts give the same bytes."""
    bytes_of = []
    for name, texts in [("a", ["arm arm"]), ("b", ["fever arm cough", "leg"])]:
        corpus = MemoryCorpus({"train": TEXTS, "validation": texts, "test": texts})
        context = context_of(tmp_path / name, corpus)
        run(context, MigOptions())
        assert set(corpus.asked) == {"train"}
        bytes_of.append(
            [
                (tmp_path / name / f"{file}.parquet").read_bytes()
                for file in ("mig", "words", "labels")
            ]
        )
    assert bytes_of[0] == bytes_of[1]


@pytest.mark.parametrize("signal", ["mig", "pmi", "npmi", "chi2", "tf", "random"])
@pytest.mark.parametrize("sign", ["positive", "any"])
def test_every_signal_gives_relevance_for_every_label(signal: str, sign: Any, context: Any) -> None:
    run(context, MigOptions(signal=Choice(name=signal), sign=sign, k=2))
    matrix = load_relevance(context.folder, LABELS.hash).matrix
    assert matrix.max(axis=1).toarray().ravel().tolist() == [1.0, 1.0]
    assert (matrix.toarray() > 0).sum(axis=1).max() <= 2


@pytest.mark.parametrize(
    ("values", "word"),
    [(lambda shape: np.full(shape, np.nan), "NaN"), (lambda shape: np.ones(1), "shape")],
)
def test_a_signal_that_misbehaves_is_named(values: Callable[..., Any], word: str) -> None:
    spec = SignalSpec(name="odd", summary="", score=lambda counts, options: values((2, 3)))
    table = Counts(
        n_docs=4,
        docs_with_word=np.ones((1, 3)),
        docs_with_label=np.ones((2, 1)),
        docs_with_both=np.ones((2, 3)),
    )
    with pytest.raises(ComponentError, match=f"'odd' gave .*{word}") as caught:
        bind_signal(spec, NoOptions()).score(table)
    assert caught.value.exit_code == 5
    assert "--signal" in caught.value.todo


def test_titles_raise_their_words(context: Any) -> None:
    run(context, MigOptions(label_text_weight=0.5, k=1))
    assert kept_words(context) == {"flu": ["fever", "cough"], "trauma": ["arm", "broken"]}
    matrix = load_relevance(context.folder, LABELS.hash).matrix.toarray()
    assert sorted(matrix[matrix > 0].tolist()) == [0.5, 0.5, 1.0, 1.0]


def test_title_words_count_however_rare(tmp_path: Path) -> None:
    """The word chills is in one document alone, and --min-df is 2."""
    corpus = MemoryCorpus({"train": TEXTS}, labels=replace(LABELS, titles=["Chills", None]))
    kept = []
    for weight in (0.0, 0.5):
        context = context_of(tmp_path / f"mig-{weight}", corpus)
        run(context, MigOptions(label_text_weight=weight))
        kept.append(set(load_relevance(context.folder, LABELS.hash).words))
    assert kept[1] - kept[0] == {"chills"}


def test_titles_are_missing(tmp_path: Path) -> None:
    context = context_of(
        tmp_path, MemoryCorpus({"train": TEXTS}, labels=replace(LABELS, titles=[None, None]))
    )
    run(context, MigOptions(label_text_weight=0.5))
    assert "no label has a title" in context.reporter.warnings[0]


def test_a_label_of_every_document_is_named_for_no_word_tells_of_it(tmp_path: Path) -> None:
    corpus = MemoryCorpus({"train": TEXTS}, gold=[[1, int(bones)] for _, bones in GOLD])
    result = run(context_of(tmp_path / "mig", corpus), MigOptions())
    assert result.summary["labels without words"] == 1
    assert "no word indicates flu:" in result.tables[0].notes[0]
    assert kept_words(context_of(tmp_path / "mig", corpus))["trauma"]


def test_stops_when_asked(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(context_of(tmp_path, MemoryCorpus({"train": TEXTS}), stopping=True), MigOptions())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("signal", ["mig", "tf"])
@pytest.mark.parametrize("of", [1, 2, 7])
def test_shards_merge_to_the_same_relevance(signal: str, of: int, tmp_path: Path) -> None:
    corpus = MemoryCorpus({"train": TEXTS})
    options: Any = {
        "signal": Choice(name=signal),
        "label_text_weight": 0.25,
        "norm": "global-max",
        "memory": "1KB",
    }
    run(context_of(tmp_path / "whole", corpus), MigOptions(**options))
    for number in range(1, of + 1):
        result = run(
            context_of(tmp_path / f"shard-{number}", corpus),
            MigOptions(shard=f"{number}/{of}", **options),
        )
        assert result.summary["shard"] == f"{number}/{of}"
        assert "--merge" in str(result.next_step)
    run(
        context_of(tmp_path / "merged", corpus),
        MigOptions(merge=(str(tmp_path / "shard-*"),), **options),
    )
    for name in ("mig", "words", "labels"):
        merged, whole = (
            pl.read_parquet(tmp_path / folder / f"{name}.parquet") for folder in ("merged", "whole")
        )
        assert merged.equals(whole)


def test_the_largest_value_of_all_labels_scales_them_all(context: Any) -> None:
    """Also where labels are worked on one by one."""
    run(context, MigOptions(norm="global-max", memory="1KB", jobs=1))
    rows = pl.read_parquet(context.folder / "mig.parquet")
    assert rows["relevance"].to_list() == pytest.approx(
        (rows["value"] / rows["value"].max()).to_list()
    )


WRONG_SHARDS: list[dict[str, Any]] = [
    {"shard": "3/2"},
    {"shard": "half"},
    {"shard": "1/2", "merge": ("x",)},
]
WRONG_OPTIONS: list[dict[str, Any]] = [
    {"memory": "lots"},
    {"k": 0},
    {"norm": "jaccard", "score": "tf"},
    {"label_text_weight": 2},
]


@pytest.mark.parametrize("wrong", [*WRONG_SHARDS, *WRONG_OPTIONS], ids=str)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="shard" if "shard" in wrong else None):
        MigOptions(**wrong)


def test_words_that_wait_in_files_give_the_same_relevance(
    context: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte of memory for them, and no file is left behind."""
    run(context, MigOptions())
    other = context_of(tmp_path / "other" / "mig", MemoryCorpus({"train": TEXTS}))
    made: list[int] = []
    monkeypatch.setattr(
        spooled_terms.SpooledTerms,
        "read",
        lambda self, rows: made.append(len(rows)) or read(self, rows),
    )
    run(other, MigOptions(memory="0.001KB"))
    assert made
    for name in ("mig.parquet", "words.parquet", "labels.parquet"):
        assert pl.read_parquet(other.folder / name).equals(pl.read_parquet(context.folder / name))
    assert {path.name for path in other.folder.iterdir()} == {
        path.name for path in context.folder.iterdir()
    }
