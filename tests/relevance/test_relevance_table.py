"""The relevance table, its edits and the forms of words are written and read back."""

import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import record_outputs

from plant_cli.api import ArtefactError
from plant_cli.relevance.cooccurrence import Margins
from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.relevance_table import (
    EDITS_FILE,
    FORMS_FILE,
    LabelEdits,
    load_relevance,
    read_counted_words,
    read_edits,
    read_forms,
    read_label_index,
    read_label_words,
    read_pairs,
    write_edits,
    write_forms,
    write_relevance,
)


@dataclass(frozen=True)
class Labels:
    ids: tuple[str, ...] = ("A", "B", "C")
    titles: tuple[str | None, ...] = ("first", None, "third")
    train_counts: tuple[int, ...] = (2, 0, 1)
    hash: str = "0123456789abcdef"

    def __len__(self) -> int:
        return len(self.ids)

    def position(self, label: str) -> int:
        return self.ids.index(label)


MARGINS = Margins(
    n_docs=3,
    words=("no", "x", "y", "z"),
    docs_with_word=np.array([3, 2, 1, 1]),
    docs_with_label=np.array([2, 0, 1]),
)
KEPT = KeptWords(
    offsets=np.array([0, 2, 2, 4]),
    words=np.array([1, 0, 3, 2], dtype=np.int32),
    values=np.array([0.6, 0.1234567890123456, 0.2, np.nan]),
    both=np.array([2, 2, 1, -1], dtype=np.int32),
)
RELEVANCE = np.array([1.0, 0.25, 1.0, 0.5])
EXPECTED = [[0.25, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0.5, 1]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run" / "mig"
    write_relevance(folder, [(KEPT, RELEVANCE)], MARGINS, Labels())
    return folder


def test_round_trip(folder: Path) -> None:
    table = load_relevance(folder, Labels.hash)
    assert table.words == ("no", "x", "y", "z")
    assert table.matrix.dtype == np.float32
    assert table.matrix.toarray().tolist() == EXPECTED
    assert table.matrix.has_sorted_indices


def test_files_hold_what_the_design_says(folder: Path) -> None:
    rows = pl.read_parquet(folder / "mig.parquet")
    assert rows.columns == [
        "label",
        "word",
        "value",
        "relevance",
        "docs_with_both",
        "docs_with_word",
        "rank",
    ]
    assert rows["label"].to_list() == ["A", "A", "C", "C"]
    assert rows["rank"].to_list() == [1, 2, 1, 2]
    assert rows["value"].to_list() == [0.6, 0.1234567890123456, 0.2, None]
    assert rows["docs_with_both"].to_list() == [2, 2, 1, None]
    assert rows["docs_with_word"].to_list() == [2, 3, 1, 1]
    assert read_counted_words(folder).rows() == [("no", 3), ("x", 2), ("y", 1), ("z", 1)]
    assert read_label_index(folder).rows() == [
        ("A", "first", 2, 2),
        ("B", None, 0, 0),
        ("C", "third", 1, 2),
    ]
    assert read_label_words(folder, "C")["word"].to_list() == ["z", "y"]
    for name in ("mig", "words", "labels"):
        assert pl.read_parquet_metadata(folder / f"{name}.parquet")["label_hash"] == Labels.hash


def test_blocks_of_labels_make_the_same_files(folder: Path, tmp_path: Path) -> None:
    first = KeptWords(
        offsets=KEPT.offsets[:2], words=KEPT.words[:2], values=KEPT.values[:2], both=KEPT.both[:2]
    )
    rest = KeptWords(
        offsets=KEPT.offsets[1:] - 2,
        words=KEPT.words[2:],
        values=KEPT.values[2:],
        both=KEPT.both[2:],
    )
    lengths = write_relevance(
        tmp_path, iter([(first, RELEVANCE[:2]), (rest, RELEVANCE[2:])]), MARGINS, Labels()
    )
    assert lengths.tolist() == [2, 0, 2]
    for name in ("mig", "words", "labels"):
        assert pl.read_parquet(tmp_path / f"{name}.parquet").equals(
            pl.read_parquet(folder / f"{name}.parquet")
        )


def test_kept_words_are_written_as_they_come(tmp_path: Path) -> None:
    """Of 100 blocks, 44 MB together, no more than a few are in memory at once."""
    count, size = 100, 20_000
    labels = Labels(
        ids=tuple(f"l{i:03d}" for i in range(count)),
        titles=(None,) * count,
        train_counts=(1,) * count,
    )
    words = np.tile(np.arange(4, dtype=np.int32), size // 4)

    def blocks() -> Iterator[tuple[KeptWords, Any]]:
        for _ in range(count):
            values = np.linspace(1.0, 0.5, size)
            yield (
                KeptWords(
                    offsets=np.array([0, size]),
                    words=words.copy(),
                    values=values,
                    both=words.copy(),
                ),
                values / 2,
            )

    tracemalloc.start()
    write_relevance(
        tmp_path, blocks(), replace(MARGINS, docs_with_label=np.ones(count, dtype=np.int64)), labels
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000
    assert (
        pl.scan_parquet(tmp_path / "mig.parquet").select(pl.len()).collect().item() == count * size
    )


def test_another_label_order_is_refused_and_both_files_named(folder: Path) -> None:
    with pytest.raises(ArtefactError, match="another label order") as caught:
        load_relevance(folder, "f" * 64)
    assert "mig.parquet" in caught.value.where
    assert "corpus/labels.parquet" in caught.value.where
    assert caught.value.exit_code == 4


def test_edits_are_applied(folder: Path) -> None:
    """A word is taken away, one is reweighed, one is added; unknown labels and words change
    nothing.
    """
    write_edits(
        folder,
        {
            "A": LabelEdits(deny=frozenset({"x", "unheard"}), allow={"no": 0.75}),
            "B": LabelEdits(allow={"z": 0.5}),
            "Z": LabelEdits(deny=frozenset({"x"})),
        },
    )
    assert load_relevance(folder, Labels.hash).matrix.toarray().tolist() == [
        [0.75, 0, 0, 0],
        [0, 0, 0, 0.5],
        [0, 0, 0.5, 1],
    ]


@pytest.mark.parametrize("name", ["mig", "words", "labels"])
def test_a_missing_or_truncated_file_is_refused(name: str, folder: Path) -> None:
    path = folder / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ArtefactError, match="damaged") as caught:
        load_relevance(folder, Labels.hash)
    assert path.name in caught.value.where
    path.unlink()
    with pytest.raises(ArtefactError, match="no relevance") as caught:
        load_relevance(folder, Labels.hash)
    assert "plant mig" in caught.value.todo


def mix_runs(folder: Path) -> None:
    """The table of one run of mig beside the other files of another."""
    other: Any = KeptWords(
        offsets=np.array([0, 1, 1, 1]),
        words=KEPT.words[:1],
        values=KEPT.values[:1],
        both=KEPT.both[:1],
    )
    rows = (folder / "mig.parquet").read_bytes()
    write_relevance(folder, [(other, RELEVANCE[:1])], MARGINS, Labels())
    (folder / "mig.parquet").write_bytes(rows)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (mix_runs, r"4 rows where labels\.parquet counts 1"),
        (
            lambda folder: (
                pl.read_parquet(folder / "words.parquet")
                .head(3)
                .write_parquet(folder / "words.parquet")
            ),
            r"words that words\.parquet does not list",
        ),
        (
            lambda folder: pl.read_parquet(folder / "mig.parquet").write_parquet(
                folder / "mig.parquet", metadata={"format": "2", "label_hash": Labels.hash}
            ),
            "format 2",
        ),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    folder: Path, change: Callable[[Path], Any], said: str
) -> None:
    change(folder)
    with pytest.raises(ArtefactError, match=said):
        load_relevance(folder, Labels.hash)


def test_nothing_kept(tmp_path: Path) -> None:
    nothing = KeptWords(
        offsets=np.zeros(4, dtype=np.int64),
        words=KEPT.words[:0],
        values=KEPT.values[:0],
        both=KEPT.both[:0],
    )
    write_relevance(tmp_path, [(nothing, RELEVANCE[:0])], MARGINS, Labels())
    assert load_relevance(tmp_path, Labels.hash).matrix.nnz == 0


@pytest.mark.parametrize("name", ["g[1]", "r?", "*", "{a,b}"])
def test_a_run_may_be_named_like_a_pattern(name: str, tmp_path: Path) -> None:
    """Another run whose name the pattern would fit is not read with it."""
    for run in (name, "r2"):
        write_relevance(tmp_path / run / "mig", [(KEPT, RELEVANCE)], MARGINS, Labels())
    assert (
        load_relevance(tmp_path / name / "mig", Labels.hash).matrix.toarray().tolist() == EXPECTED
    )
    assert len(read_counted_words(tmp_path / name / "mig")) == 4


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("mig.parquet", lambda folder: read_label_words(folder, "A")),
        ("words.parquet", read_counted_words),
        ("labels.parquet", read_label_index),
    ],
)
def test_files_that_are_not_what_mig_recorded_are_refused(
    name: str, read: Callable[[Path], Any], folder: Path
) -> None:
    record_outputs(folder, "mig")
    load_relevance(folder, Labels.hash)
    path = folder / name
    pl.read_parquet(path).write_parquet(
        path, metadata=pl.read_parquet_metadata(path), compression="uncompressed"
    )
    for reader in (lambda folder: load_relevance(folder, Labels.hash), read):
        with pytest.raises(
            ArtefactError, match=f"the file '{name}' of the stage 'mig' is damaged, or was changed"
        ):
            reader(folder)


PAIRS = [("haus", "häuser"), ("gut", "gut"), ("haus", "haus")]


def test_forms_are_kept_in_their_order_and_without_any_there_is_no_file(tmp_path: Path) -> None:
    write_forms(tmp_path, [])
    assert not (tmp_path / FORMS_FILE).exists()
    assert read_forms(tmp_path) == {}
    write_forms(tmp_path, PAIRS)
    assert read_pairs(tmp_path) == PAIRS
    assert read_forms(tmp_path) == {"haus": ["häuser", "haus"]}
    (tmp_path / FORMS_FILE).write_bytes(b"no table")
    with pytest.raises(ArtefactError, match="cannot be read") as caught:
        read_pairs(tmp_path)
    assert FORMS_FILE in caught.value.where


def test_round_trip_keeps_words_that_yaml_would_change(tmp_path: Path) -> None:
    edits = {
        "1e4": LabelEdits(deny=frozenset({"no", "null", "12:30"}), allow={"on": 0.25, "été": 1.0}),
        "B": LabelEdits(allow={"x": 1e-4}),
    }
    edits["line\x85ends"] = LabelEdits(deny=frozenset({"\x85x", "a\u2028b"}))
    write_edits(tmp_path, edits)
    assert read_edits(tmp_path) == edits


def test_later_edits_win() -> None:
    first = LabelEdits(deny=frozenset({"a", "b"}), allow={"c": 0.5, "d": 0.5})
    joined = first.then(LabelEdits(deny=frozenset({"c"}), allow={"a": 0.1}))
    assert joined == LabelEdits(deny=frozenset({"b", "c"}), allow={"d": 0.5, "a": 0.1})
    assert joined.then(LabelEdits(deny=frozenset({"c"}), allow={"a": 0.1})) == joined
    assert joined.then(LabelEdits(allow={"a": 0.9})).allow == {"d": 0.5, "a": 0.9}


def test_nothing_left_removes_the_file(tmp_path: Path) -> None:
    write_edits(tmp_path, {"a": LabelEdits(deny=frozenset({"x"}))})
    write_edits(tmp_path, {"a": LabelEdits()})
    assert not (tmp_path / EDITS_FILE).exists()
    assert read_edits(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: {deny: word}", "deny must be a list of words"),
        ("a: {deny: [[x]]}", "deny must be a list of words"),
        ("a: {denied: [x]}", "unexpected denied"),
        ("a: {allow: {x: much}}", "allow must give each word a number"),
        ("a: {allow: [x]}", "allow must give each word a number"),
        ("a: {allow: {x: 1.5}}", "1.5"),
        ("a: [x]", "a label has neither deny nor allow"),
        ("- a", "no mapping of labels"),
        ("a: {deny: [x", "no YAML"),
        ("\x00", "no YAML"),
    ],
)
def test_a_file_that_is_wrong_is_refused(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / EDITS_FILE).write_text(text)
    with pytest.raises(ArtefactError) as caught:
        read_edits(tmp_path)
    assert what in caught.value.what
    assert EDITS_FILE in caught.value.where
    assert "mig edit" in caught.value.todo
    assert caught.value.exit_code == 4
