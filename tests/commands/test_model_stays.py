"""While a corpus grows and a model is made anew, or if that stops, fails or is killed, the earlier
model answers.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import run_at

import plant_cli.commands.finetune as finetune
from plant_cli.api import Interrupted, Request
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.registry import installed
from plant_cli.runs.folder import Run
from plant_cli.runs.runner import RequestRunner
from plant_cli.scoring.opened_models import open_model

TEXTS = ("fever and cough", "a broken arm", "nausea at night", "pain in the leg")
TEXT = "fever and a cough"
SETS = ("finetune.scorers=[words]", "finetune.network=false")
NEW = "A0"  # first in the order of labels, so that every row moves


class Killed(BaseException):
    """The process ends, and nothing more is written."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stays")
    splits = ["train"] * 16 + ["validation"] * 8 + ["test"] * 8
    rows = [
        {"doc_id": str(n), "text": f"{TEXTS[n % 4]} {n}", "labels": [f"L{n % 4}"], "split": split}
        for n, split in enumerate(splits)
    ]
    further = [
        {"doc_id": f"n{n}", "text": f"a rash {n}", "labels": [NEW], "split": "train"}
        for n in range(3)
    ]
    for name, content in (("corpus", rows), ("grown", rows + further)):
        lines = "".join(json.dumps(row) + "\n" for row in content)
        (place / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    run_at(place / "run", "finetune", f"data.path={place / 'corpus.jsonl'}", *SETS)
    return place


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained / "run", tmp_path / "run"))


def grow(trained: Path, run: Path) -> None:
    run_at(run, "finetune", f"data.path={trained / 'grown.jsonl'}", *SETS, grow=True)


def ask(run: Path) -> dict[str, Any]:
    """What every reader of a model says."""
    folder = run.parent / "asked"
    folder.mkdir(exist_ok=True)
    (folder / "f.jsonl").write_text(
        json.dumps({"doc_id": "f", "text": TEXT, "label": "L0", "decision": "accept"}) + "\n"
    )
    table, best = (
        run_at(run, "suggest", flags={"suggest": {"text": TEXT}}).tables[0],
        open_model(run),
    )
    reason = run_at(run, "explain", flags={"explain": {"text": TEXT}}).data
    run_at(run, "export", flags={"export": {"folder": str(folder / "export")}}, force=True)
    exported = open_model(folder / "export")
    sheet = {"output": str(folder / "sheet.csv"), "split": "test"}
    run_at(run, "review export", flags={"review export": sheet}, force=True)
    decided = {"sheets": [str(folder / "f.jsonl")], "output": str(folder / "kept.jsonl")}
    run_at(run, "review import", flags={"review import": decided}, force=True)
    return {
        "suggest": table.rows,
        "explain": reason,
        "labels": [best.labels.ids, exported.labels.ids],
        "best": [one.suggest([TEXT])[0] for one in (best, exported)],
        "sheet": (folder / "sheet.csv").read_text(),
        "served": serve(run),
    }


def serve(run: Path) -> int:
    context = RequestRunner(Request(registry=installed(), run_path=run)).open("serve")
    return context.open_corpus(context.input("finetune")).sizes["train"]


def happen(monkeypatch: pytest.MonkeyPatch, what: Callable[[], None]) -> None:
    """When the new model is about to be fitted."""
    fit = finetune.finetune_scorers

    def first(*given: Any) -> Any:
        what()
        return fit(*given)

    monkeypatch.setattr(finetune, "finetune_scorers", first)


def test_the_earlier_model_answers_while_a_new_one_is_made(
    trained: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, during = ask(run), list[dict[str, Any]]()
    happen(monkeypatch, lambda: during.append(ask(run)))
    grow(trained, run)
    assert during == [before]
    assert open_model(run).labels.ids == [NEW, "L0", "L1", "L2", "L3"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Killed])
def test_the_earlier_model_answers_after_a_new_one_was_not_finished(
    trained: Path, run: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    before = ask(run)

    def end(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        if error is Killed:
            patched.setattr("plant_cli.runs.attempt._fail", end)
        happen(patched, end)
        with pytest.raises((error, Interrupted)):
            grow(trained, run)
    assert Run.open(run).header.former != []
    assert ask(run) == before
    run_at(run, "finetune", f"data.path={trained / 'grown.jsonl'}", *SETS, grow=True, force=True)
    assert open_model(run).labels.ids[0] == NEW


@pytest.mark.parametrize("renamed", [1, 2])
def test_the_earlier_model_answers_after_a_kill_while_the_corpus_was_replaced(
    trained: Path, run: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    before, rename, count = ask(run), Path.rename, [0]

    def end(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        count[0] += "corpus" in (self.name, Path(target).name)
        if count[0] == renamed:
            raise Killed
        return moved

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", end)
        with pytest.raises(Killed):
            grow(trained, run)
    assert (run / "corpus").exists() == (renamed == 2)
    assert ask(run) == before
    grow(trained, run)
    assert open_model(run).labels.ids[0] == NEW


def test_what_is_kept_of_a_former_corpus_has_no_documents(trained: Path, run: Path) -> None:
    grow(trained, run)
    [kept] = (run / ".former").iterdir()
    names = {"labels.parquet", "statistics.json"}
    assert {path.name for path in kept.iterdir()} == {*names, "splits.json"}
    assert CorpusRecord.read(kept).outputs.keys() == names


def test_what_a_kill_left_of_a_former_corpus_goes(
    trained: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new corpus counts already, and the same command again finds that nothing has grown."""

    def end(_: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("plant_cli.runs.run_corpus._keep_for_models", end)
        with pytest.raises(Killed):
            grow(trained, run)
    [kept] = (run / ".former").iterdir()
    assert (kept / "documents.parquet").exists()
    (kept / f".{'a' * 32}-splits.json").write_text("half")
    grow(trained, run)
    assert {path.name for path in kept.iterdir()} == {
        "labels.parquet",
        "statistics.json",
        "splits.json",
    }
