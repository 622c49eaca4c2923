"""Evaluations computed again: numbers are compared place by place, and nothing of the run is
changed.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from plant_study.recomputing import Recomputed, recompute

from plant_cli.api import DataError, Interrupted, Request, Result
from plant_cli.commands import SPECS
from plant_cli.runs.folder import Run
from plant_cli.runs.session import Interruption
from plant_cli.testing.contexts import make_registry

SAVED = {"value": 0.5, "undefined": None, "list": [1, 2.0], "name": "P@1", "flag": True}


@dataclass
class Writer:
    """Plays `eval`: writes figures into the folder that it is asked for."""

    figures: dict[str, Any]
    asked: list[Request] = field(default_factory=list)

    def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
        self.asked.append(request)
        folder = request.run_path / name
        folder.mkdir()
        for file in ("metrics.json", "intervals.json"):
            (folder / file).write_text(json.dumps(self.figures))
        return Result()

    def run_recipe(self, request: Request) -> list[Any]:
        raise AssertionError


@pytest.fixture
def run(clinic: Any) -> Run:
    clinic("mig")
    run = Run.open(clinic.path)
    record = run.folder("mig").record()
    assert record is not None
    folder = run.folder("eval")
    folder.path.mkdir()
    for file in ("metrics.json", "intervals.json"):
        (folder.path / file).write_text(json.dumps(SAVED))
    options = {"bootstrap": 20, "require": ["P@1>=0.9"]}
    folder.write(
        record.model_copy(
            update={
                "stage": "eval",
                "options": options,
                "inputs": {"mig": run.folder("mig").output_hash(record)},
            }
        )
    )
    return run


def recompute_by(writer: Writer, run: Run) -> Recomputed:
    """The one evaluation of the run, computed again."""
    [found] = recompute(run, Request(registry=make_registry(*SPECS)), writer)
    return found


def test_the_same_numbers(run: Run) -> None:
    before = sorted(path for path in run.path.rglob("*"))
    writer = Writer({**SAVED, "value": 0.5 + 1e-12, "name": "another word", "new": 7})
    found = recompute_by(writer, run)
    assert (found.folder, found.numbers, found.different, found.reason) == ("eval", 10, (), "")
    assert writer.asked[0].flags["eval"] == {
        "bootstrap": 20,
        "require": [],
    }  # what was required is no figure
    assert writer.asked[0].run_path != run.path
    assert sorted(path for path in run.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"value": 0.6}, "value 0.5, again 0.6"),
        ({"undefined": 0.1}, "undefined None, again 0.1"),
        ({"list": [1]}, "list[1] 2.0, again None"),
        ({"flag": False}, "flag True, again False"),
        ({"value": "0.5"}, "value 0.5, again 0.5"),
    ],
)
def test_another_number_is_named(run: Run, changed: dict[str, Any], place: str) -> None:
    found = recompute_by(Writer({**SAVED, **changed}), run)
    assert found.different == (f"metrics.json: {place}", f"intervals.json: {place}")


def test_what_cannot_be_computed_again_says_why(run: Run) -> None:
    class Failing(Writer):
        def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
            raise DataError(
                "the source is gone", where="data", expected="a table", todo="restore it"
            )

    found = recompute_by(Failing(SAVED), run)
    assert found.reason == "the source is gone"
    record = run.folder("eval").record()
    assert record is not None
    (run.path / "p.csv").write_text("x")
    run.folder("eval").write(record.model_copy(update={"files": {str(run.path / "p.csv"): "0"}}))
    found = recompute_by(Writer(SAVED), run)
    assert found.reason == f"'{run.path / 'p.csv'}' is not what it was computed from"
    (run.path / "mig" / "stage.json").unlink()
    found = recompute_by(Writer(SAVED), run)
    assert found.reason == "'mig' is not what it was computed from"


def test_it_stops_when_it_is_asked_to(run: Run) -> None:
    class Signalled(Writer):
        def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
            with Interruption(lambda _: None):  # as every stage has one
                os.kill(os.getpid(), signal.SIGINT)
            return super().run_stage(request, name, tag)

    with pytest.raises(Interrupted, match="stopped while figures were computed again"):
        recompute_by(Signalled(SAVED), run)


def test_links_lead_to_the_stages(run: Run) -> None:
    class Looking(Writer):
        def run_stage(self, request: Request, name: str, tag: str | None = None) -> Result:
            assert (request.run_path / "mig").resolve() == (Path(run.path) / "mig").resolve()
            assert not (request.run_path / "eval").exists()
            return super().run_stage(request, name, tag)

    found = recompute_by(Looking(SAVED), run)
    assert not found.reason
