"""Which plugin reads a corpus: by name, or by what lies at its path."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from round_trips import write_format

from plant_cli.api import (
    Choice,
    ComponentError,
    DataError,
    DataSection,
    Dataset,
    DatasetSpec,
    PluginError,
    SilentReporter,
    Task,
    UsageError,
)
from plant_cli.data import tables
from plant_cli.data import text_tables as blocks_of_text
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.loading import find_formats, load_dataset
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context, make_registry

SPECS = installed().specs(DatasetSpec)
FORMATS = [spec for spec in SPECS if spec.write is not None]
ROWS = {
    "doc_id": ["n1", "n2", "n3"],
    "text": ["acute bronchitis with a cough", "fracture of the left arm", "fever, and cough again"],
    "labels": [["J20", "R05"], ["S52"], ["R50", "R05"]],
}


def corpus() -> Dataset:
    frame = pl.LazyFrame(ROWS)
    return Dataset(
        splits={"train": frame, "test": frame.with_columns(doc_id=pl.col("doc_id") + "t")}
    )


def context(reporter: SilentReporter | None = None):
    return make_context(components=installed(), reporter=reporter or SilentReporter())


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("spec", FORMATS, ids=lambda spec: spec.name)
def test_each_format_is_recognised_by_its_own_plugin_alone(
    spec: DatasetSpec, suffix: str, tmp_path: Path
) -> None:
    spec.write(corpus(), tmp_path, suffix)  # type: ignore[misc]
    reporter = SilentReporter()
    assert list(find_formats(SPECS, DataSection(path=str(tmp_path)))) == [spec.name]
    dataset = load_dataset(context(reporter), DataSection(path=str(tmp_path)))
    assert dataset.splits["train"].collect().height == 3
    assert [spec.name in note for note in reporter.notes] == [True]


@pytest.mark.parametrize(
    "name", ["data.csv", "data.tsv", "data.jsonl", "data.parquet", "data.json"]
)
def test_tables_are_read_as_tables(name: str, tmp_path: Path) -> None:
    tables.write_table(pl.DataFrame(ROWS).with_columns(split=pl.lit("train")), tmp_path / name)
    assert set(find_formats(SPECS, DataSection(path=str(tmp_path / name)))) <= {"files"}
    assert (
        load_dataset(context(), DataSection(path=str(tmp_path / name)))
        .splits["train"]
        .collect()
        .height
        == 3
    )


def loading(load) -> tuple[object, DataSection]:
    """The context of a stage, and the section `data`, with a dataset of a stranger."""
    spec = DatasetSpec(name="odd", summary="Odd.", load=load)
    return make_context(components=make_registry(spec), reporter=SilentReporter()), DataSection(
        dataset=Choice(name="odd"), path="nowhere.odd"
    )


def test_a_path_that_is_not_there_is_named_for_any_reader() -> None:
    with pytest.raises(DataError, match=r"there is no 'nowhere\.odd'"):
        load_dataset(*loading(lambda data, options: Path(data.path).read_text()))


def test_what_is_no_dataset_is_named_with_its_plugin() -> None:
    with pytest.raises(PluginError, match="the dataset 'odd' gave dict for `load`"):
        load_dataset(*loading(lambda data, options: {"train": None}))


def test_titles_are_read_whatever_the_format(tmp_path: Path) -> None:
    """Formats of other tools have no place for them."""
    (tmp_path / "c").mkdir()
    next(spec for spec in FORMATS if spec.name == "annif-tsv").write(corpus(), tmp_path / "c", "")  # type: ignore[misc]
    (tmp_path / "titles.tsv").write_text("label\ttitle\nJ20\tAcute bronchitis\n")
    found = load_dataset(
        context(), DataSection(path=str(tmp_path / "c"), titles=str(tmp_path / "titles.tsv"))
    )
    assert (
        dict(found.labels.select("label", "title").collect().iter_rows())["J20"]
        == "Acute bronchitis"
    )
    assert str(tmp_path / "titles.tsv") in found.files
    with pytest.raises(UsageError, match="'annif-tsv' does not read evidence"):
        load_dataset(
            context(), DataSection(path=str(tmp_path / "c"), evidence=str(tmp_path / "spans.tsv"))
        )


@pytest.mark.parametrize("option", ["titles", "vocabulary"])
def test_both_options_take_the_same_tables_in_place_of_the_one_beside(
    option: str, tmp_path: Path
) -> None:
    tables.write_table(pl.DataFrame(ROWS), tmp_path / "data.csv")
    label = ROWS["labels"][0][0]
    (tmp_path / "gnd.csv").write_text(f"id,name\n{label},Named\n")
    data = DataSection(path=str(tmp_path / "data.csv"), **{option: str(tmp_path / "gnd.csv")})
    found = load_dataset(context(), data)
    assert found.labels.select("label", "title").collect().rows() == [(label, "Named")]
    assert [Path(file).name for file in found.files] == ["data.csv", "gnd.csv"]


@pytest.mark.parametrize("again", [False, True])
def test_what_is_recognised_is_told_once(again: bool, tmp_path: Path) -> None:
    tables.write_table(pl.DataFrame(ROWS), tmp_path / "data.csv")
    (tmp_path / "gnd.csv").write_text("id,name\nJ20,Named\n")
    reporter = SilentReporter()
    load_dataset(
        context(reporter),
        DataSection(path=str(tmp_path / "data.csv"), titles=str(tmp_path / "gnd.csv")),
        again=again,
    )
    assert ["a table of 1 labels" in note for note in reporter.notes][:1] == (
        [] if again else [True]
    )


def test_what_was_guessed_is_told_to_whoever_asks(tmp_path: Path) -> None:
    tables.write_table(pl.DataFrame(ROWS), tmp_path / "data.csv")
    heard: list[str] = []
    reporter = SilentReporter()
    dataset = load_dataset(
        context(reporter), DataSection(path=str(tmp_path / "data.csv")), tell=heard.append
    )
    assert heard == list(dataset.remarks) != []
    assert not set(heard) & {*reporter.notes, *reporter.warnings}


def test_a_folder_of_two_formats_must_be_named(tmp_path: Path) -> None:
    for name in ("pecos", "attentionxml"):
        write_format(name, corpus(), tmp_path)
    with pytest.raises(UsageError, match="2 formats fit"):
        load_dataset(context(), DataSection(path=str(tmp_path)))
    dataset = load_dataset(context(), DataSection(path=str(tmp_path), dataset=Choice(name="pecos")))
    assert "Y.trn.npz" in " ".join(dataset.files)


def test_an_unknown_name_and_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(ComponentError, match="no dataset named 'peccos'"):
        load_dataset(context(), DataSection(path=str(tmp_path), dataset=Choice(name="peccos")))
    assert find_formats(SPECS, DataSection(path=str(tmp_path / "nowhere"))) == {}
    assert find_formats(SPECS, DataSection()) == {}


def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    """Also by the formats that look into folders."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(str(tmp_path / "plug"))
        for path in (tmp_path / "pipe", tmp_path / "plug", Path("/dev/zero")):
            with pytest.raises(DataError, match="no plain file") as caught:
                load_dataset(context(), DataSection(path=str(path)))
            assert caught.value.where == str(path)


class Watcher(SilentReporter):
    """Keeps what progress was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[tuple[str, float]] = []

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        watcher = self

        class Shown:
            def advance(self, amount: float = 1, **figures: float) -> None:
                watcher.shown.append((description, amount))

        yield Shown()


def test_a_corpus_that_waits_in_files_shows_progress_and_a_small_one_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.jsonl"
    tables.write_table(pl.DataFrame(ROWS).with_columns(split=pl.lit("train")), path)
    small, large = Watcher(), Watcher()
    load_dataset(context(small), DataSection(path=str(path)))
    monkeypatch.setattr(tables, "LARGE_TABLE", 100)
    monkeypatch.setattr(blocks_of_text, "CHARACTERS_PER_BLOCK", 150)
    load_dataset(context(large), DataSection(path=str(path)))
    assert small.shown == []
    assert {what for what, _ in large.shown} == {f"unpacking {path}"}
    assert sum(rows for _, rows in large.shown) == 3


def test_the_run_of_the_environment_has_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that reads a corpus outside of any run takes that of the run that PLANT_RUN
    names.
    """
    pl.DataFrame({**ROWS, "split": ["train", "validation", "test"]}).write_parquet(
        tmp_path / "data.parquet"
    )
    data = DataSection(path=str(tmp_path / "data.parquet"))
    CorpusRecord(
        source=data.model_dump(mode="json"), files=[], splits={}, held_out=[], label_hash="h"
    ).write(tmp_path / "run" / "corpus")
    context = make_context(components=installed(), reporter=SilentReporter())
    with pytest.raises(UsageError, match="no corpus was named"):
        load_dataset(context, DataSection())
    monkeypatch.setenv("PLANT_RUN", str(tmp_path / "run"))
    assert set(load_dataset(context, DataSection()).splits) == {"train", "validation", "test"}
