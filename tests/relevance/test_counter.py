"""Counts of a corpus are the same whole, in shards, and in any order of the shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import DataError, SilentReporter, Split, UsageError
from plant_cli.data.labels import LabelTable
from plant_cli.data.shares import Shard
from plant_cli.data.word_analysis import PLAIN, WordAnalyser
from plant_cli.relevance.counter import CorpusCounter
from plant_cli.runs.session import Session

TEXTS = [
    "Fever and cough!",
    "fever, chills and cough",
    "a broken arm",
    "ARM and leg; broken",
    "fever and leg",
]
GOLD = csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]], dtype=np.int32))


@dataclass
class MemoryCorpus:
    """A corpus with a split `train`."""

    data_hash: str = "d"
    analyser: WordAnalyser = PLAIN
    texts: Sequence[str] = field(default_factory=lambda: TEXTS)
    labels: LabelTable = field(
        default_factory=lambda: LabelTable(
            ids=["flu", "trauma"], titles=[None] * 2, train_counts=[3, 2]
        )
    )

    @property
    def sizes(self) -> dict[str, int]:
        return {"train": len(self.texts)}

    def gold_labels(self, name: Any) -> Split:
        return self.split(name)

    def stream(self, name: Any) -> Iterator[Split]:
        """The documents one by one."""
        whole = self.split(name)
        for row in range(len(whole)):
            part = slice(row, row + 1)
            yield replace(
                whole,
                doc_ids=whole.doc_ids[part],
                texts=whole.texts[part],
                gold=whole.gold[part],
                unseen=whole.unseen[part],
            )

    def split(self, name: Any) -> Split:
        count = len(self.texts)
        ids = [str(number) for number in range(count)]
        return Split(
            name=name,
            doc_ids=ids,
            texts=self.texts,
            gold=GOLD[:count],
            unseen=csr_array((count, 0)),
        )


@pytest.fixture
def counter(tmp_path: Path) -> Callable[..., CorpusCounter]:
    session = Session(
        reporter=SilentReporter(), run_path=tmp_path / "run", folder=tmp_path / "run" / "mig"
    )
    given: dict[str, Any] = {
        "session": session,
        "min_df": 2,
        "occurrences": True,
        "memory": 1000,
        "check": lambda: None,
    }
    return lambda corpus=None, **changes: CorpusCounter(
        corpus=corpus or MemoryCorpus(), **{**given, **changes}
    )


@pytest.mark.parametrize("memory", [1000, 1])
@pytest.mark.parametrize("of", [1, 2, 5])
def test_shards_add_up_to_the_whole(of: int, memory: int, tmp_path: Path, counter: Any) -> None:
    whole = counter().count()
    for number in range(1, of + 1):
        figures = counter(memory=memory).write_shard(
            tmp_path / "shards" / str(number), Shard(number, of)
        )
        assert figures["shard"] == f"{number}/{of}"
    merged = counter().merge([str(tmp_path / "shards" / "*")])
    assert merged.margins.words == whole.margins.words
    first, second = (source.count(0, 2) for source in (whole, merged))
    dense = [np.zeros((2, len(whole.margins.words)), dtype=int) for _ in range(2)]
    for table, pairs in zip(dense, (first, second), strict=True):
        table[pairs.label, pairs.word] = pairs.both
    assert dense[0].tolist() == dense[1].tolist()


def test_nothing_to_merge_is_told(tmp_path: Path, counter: Any) -> None:
    with pytest.raises(UsageError, match="no counts to merge") as caught:
        counter().merge([str(tmp_path / "*")])
    assert "--merge" in caught.value.where


def test_texts_without_a_common_word_are_told(counter: Any) -> None:
    with pytest.raises(DataError, match="at least 9 training documents") as caught:
        counter(min_df=9).count()
    assert "--min-df" in caught.value.todo


def test_the_user_may_stop_between_documents(counter: Any) -> None:
    asked: list[int] = []

    def check() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        counter(check=check).count()
