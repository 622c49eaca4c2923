"""Plugins that misbehave in use: a table of function and way, with the exit code, and what is
said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import strange_plugin
import torch
from builders import run_at
from scipy.sparse import coo_array, csr_array

from plant_cli.api import (
    Dataset,
    FittedScorer,
    MetricValue,
    Reason,
    Result,
    SilentReporter,
    WeightedMetric,
)
from plant_cli.cli.failures import report_failures
from plant_cli.registry import Registry

EMPTY = SimpleNamespace()
TEXTS = ("fever and cough", "a broken arm", "nausea at night", "pain in the leg")
COMMANDS = {  # by which command each function is called
    "fit": "train", "tensors": "train", "score": "train", "load": "suggest", "explain": "suggest", "compute": "eval",
    "combine": "eval", "signal": "mig", "dataset": "read", "run": "strange", "recognise": "mig",
    "loss": "network", "select": "network",
}  # fmt: skip
NETWORK = (
    "finetune.loss=strange", "finetune.scorers=[]", "finetune.init=random", "finetune.head=random", "finetune.epochs=1",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder={name: label-attention, heads: 2, pool: 8}", "machine.device=cpu", "machine.precision=fp32",
)  # fmt: skip
SETS = {
    "network": ("finetune", *NETWORK),
    "train": ("finetune", "finetune.network=false", "finetune.scorers=[strange]"),
    "suggest": ("suggest", "suggest.text=fever at night", "suggest.why=true"),
    "eval": ("eval", "eval.bootstrap=20", "eval.metric=[strangeness]"),
    "mig": ("mig", "mig.signal=strange", "mig.k=5"),
    "read": ("mig", "data.dataset=strange", "mig.k=5"),
    "strange": ("strange",),
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Everything that is installed, and the strange plugin."""
    found = Registry()
    found.load(entry_points(group="plant"))
    found.register(strange_plugin, name="stranger")
    return found


@pytest.fixture(autouse=True)
def _well() -> Iterator[None]:
    yield
    strange_plugin.MISBEHAVE.clear()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty documents of four labels."""
    path = tmp_path_factory.mktemp("strange") / "corpus.jsonl"
    splits = ["train"] * 24 + ["validation"] * 8 + ["test"] * 8
    rows = [
        {
            "doc_id": str(row),
            "text": f"{TEXTS[row % 4]} {row}",
            "labels": [f"L{row % 4}"],
            "split": split,
        }
        for row, split in enumerate(splits)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def plant(registry: Registry, corpus: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run one of the commands in a run folder of its own, or in another one; errors leave as
    from the command line.
    """

    def run(command: str, *sets: str, path: Path | None = None, **request: Any) -> Any:
        name, *usual = SETS[command]
        named = (
            () if command in ("read", "strange", "suggest", "eval") else (f"data.path={corpus}",)
        )
        with report_failures("plant-cli", registry):
            return run_at(
                path or tmp_path / "run", name, *named, *usual, *sets, registry=registry, **request
            )

    return run


@pytest.fixture(scope="module")
def trained(registry: Registry, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with the strange scorer, trained while it did right."""
    path = tmp_path_factory.mktemp("trained") / "run"
    name, *sets = SETS["train"]
    run_at(path, name, f"data.path={corpus}", *sets, registry=registry)
    run_at(path, "predict", registry=registry)
    return path


VALUES: list[Any] = [None, 5, "text", [None], EMPTY]
CASES = [
    (name, how)
    for name in COMMANDS
    if name != "recognise"
    for how in ("exit", "raise", *((("give", value)) for value in VALUES))
]


@pytest.mark.parametrize(("name", "how"), CASES, ids=str)
def test_a_function_that_fails_is_the_plugins_failure(
    plant: Callable[..., Any],
    trained: Path,
    name: str,
    how: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 5, and the component or the plugin by name: never success, never a bug of plant."""
    strange_plugin.MISBEHAVE[name] = how
    command = COMMANDS[name]
    with pytest.raises(SystemExit) as left:
        plant(
            command,
            path=trained if command in ("suggest", "eval") else None,
            force=command == "eval",
        )
    said = capsys.readouterr().err
    assert left.value.code == (4 if (name, how) == ("load", "raise") else 5), (
        said
    )  # damaged arrays would do the same
    assert "strange" in said.splitlines()[0]
    assert "a bug" not in said
    assert (name, how) != ("load", "raise") or "the plugin 'stranger'" in said
    if how == "exit":
        assert "sys.exit(0) was called" in said
        assert f"{strange_plugin.__file__}:" in said


LAZY = {
    "doc_id": ["a", "b"],
    "text": ["fever and cough", "fever and pain"],
    "labels": [["F"], ["A"]],
}


def metric(**changes: Any) -> MetricValue:
    return MetricValue(
        **{
            "name": "strangeness",
            "contributions": np.ones((8, 2)),
            "combine": lambda sums: sums[:, 0],
            **changes,
        }
    )


COUNTER = strange_plugin.Counter(np.ones(4))
DEEPER: list[tuple[str, Any]] = [
    ("score", [np.zeros((8, 4))]),
    ("score", []),
    ("score", [csr_array((3, 9))]),
    ("score", [csr_array(np.full((8, 4), np.nan))]),
    ("score", [coo_array((8, 4))]),
    ("score", [csr_array(np.zeros((8, 4), dtype=bool))]),
    ("fit", FittedScorer(scorer=None)),  # type: ignore[arg-type]
    ("fit", FittedScorer(scorer=COUNTER, left_out=5)),  # type: ignore[arg-type]
    ("fit", FittedScorer(scorer=COUNTER, left_out=[np.zeros((24, 4))])),  # type: ignore[list-item]
    ("fit", FittedScorer(scorer=COUNTER, left_out=[csr_array((3, 4))])),
    ("tensors", {"a": "text"}),
    ("tensors", {"a": np.array(["text"])}),
    ("tensors", {"a": np.array([EMPTY])}),
    ("tensors", {5: np.zeros(2)}),
    ("explain", []),
    ("explain", [Reason(text=5)] * 4),  # type: ignore[arg-type]
    ("explain", [Reason(text="a", words="abc")] * 4),
    ("explain", [Reason(text="a", words=[1])] * 4),  # type: ignore[list-item]
    ("compute", metric()),
    ("compute", [metric(name=5)]),
    ("compute", [metric(name="")]),
    ("compute", [metric(), metric()]),
    ("compute", [metric(contributions=None)]),
    ("compute", [metric(contributions=np.ones(8))]),
    ("compute", [metric(contributions=np.ones((3, 2)))]),
    ("compute", [metric(contributions=np.full((8, 2), "a"))]),
    ("compute", [metric(contributions=np.full((8, 2), np.nan))]),
    ("compute", [metric(combine=5)]),
    ("compute", [metric(per_document=np.ones(3))]),
    (
        "compute",
        [WeightedMetric(name="strangeness", documents=3, compute=lambda weights: weights[:, 0])],
    ),
    ("compute", [WeightedMetric(name="strangeness", documents=8, compute=lambda weights: None)]),  # type: ignore[arg-type,return-value]
    ("loss", torch.ones(8, requires_grad=True)),
    ("loss", torch.tensor(1)),
    ("loss", torch.tensor(1.0)),
    ("loss", torch.tensor(np.nan, requires_grad=True)),
    ("loss", torch.tensor(np.inf, requires_grad=True)),
    ("select", torch.ones(8, 1, dtype=torch.bool)),
    ("select", torch.ones(8, 4)),
    ("select", np.ones((8, 4), dtype=bool)),
    ("combine", np.zeros(7)),
    ("combine", np.zeros((1, 1))),
    ("combine", ["a"]),
    ("signal", np.zeros(3)),
    ("signal", np.array(np.nan)),
    ("signal", np.array(["a"])),
    ("dataset", Dataset(splits={"train": None})),  # type: ignore[dict-item]
    ("dataset", Dataset(splits={"train": pl.DataFrame(LAZY)})),  # type: ignore[dict-item]
    ("dataset", Dataset(splits={"train": pl.LazyFrame(LAZY)}, files=[5])),  # type: ignore[list-item]
    ("dataset", Dataset(splits={"train": pl.LazyFrame(LAZY)}, remarks=[5])),  # type: ignore[list-item]
    ("dataset", Dataset(splits={"train": pl.LazyFrame(LAZY)}, labels=pl.LazyFrame({"a": [1]}))),
    ("run", Result(tables=5)),  # type: ignore[arg-type]
    ("run", Result(tables=["text"])),  # type: ignore[list-item]
    ("run", Result(summary=5)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "value"), DEEPER, ids=range(len(DEEPER)))
def test_what_is_wrong_inside_is_the_plugins_failure(
    plant: Callable[..., Any],
    trained: Path,
    name: str,
    value: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    strange_plugin.MISBEHAVE[name] = ("give", value)
    command = COMMANDS[name]
    with pytest.raises(SystemExit) as left:
        plant(
            command,
            path=trained if command in ("suggest", "eval") else None,
            force=command == "eval",
        )
    said = capsys.readouterr().err
    assert left.value.code == 5, said
    assert "strange" in said


def test_a_loss_whose_gradient_is_no_number_is_named(
    plant: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    strange_plugin.MISBEHAVE["loss"] = "steep"
    with pytest.raises(SystemExit) as left:
        plant("network")
    said = capsys.readouterr().err
    assert left.value.code == 5, said
    assert "the gradient that the loss 'strange' has for finite scores is not finite" in said


def give(**columns: Any) -> Dataset:
    """Two documents, some of whose columns are others; None: it is missing."""
    kept = {name: values for name, values in {**LAZY, **columns}.items() if values is not None}
    return Dataset(splits={"train": pl.LazyFrame(kept)})


def fail(frame: pl.DataFrame) -> pl.DataFrame:
    raise KeyError("strange")


DOCUMENTS = pl.LazyFrame(LAZY)


def title(**columns: Any) -> Dataset:
    """Documents with a table of labels, some of whose columns are odd."""
    named = pl.LazyFrame({"label": ["F"], "title": ["fever"], **columns})
    return Dataset(splits={"train": DOCUMENTS}, labels=named)


PAIR = pl.LazyFrame({"doc_id": ["a"], "label": ["F"]})
ODD_DATASETS: dict[str, tuple[int, Dataset]] = {
    "without texts": (4, give(text=None)),
    "without labels": (4, give(labels=None)),
    "without ids": (4, give(doc_id=None)),
    "texts are numbers": (4, give(text=[1, 2])),
    "texts are null": (4, give(text=[None, None])),
    "labels are no lists": (4, give(labels=["F", "A"])),
    "labels are records": (4, give(labels=[[{"a": 1}], [{"a": 2}]])),
    "ids are null": (4, give(doc_id=[None, "b"])),
    "ids are lists": (4, give(doc_id=[["a"], ["b"]])),
    "ids are bytes": (4, give(doc_id=[b"\xff", b"a"])),
    "no documents": (4, Dataset(splits={"train": DOCUMENTS.head(0)})),
    "no splits": (4, Dataset(splits={})),
    "texts that fail": (5, Dataset(splits={"train": DOCUMENTS.map_batches(fail)})),
    "a file that is gone": (5, Dataset(splits={"train": pl.scan_csv("/nowhere/x.csv")})),
    "titles that fail": (5, Dataset(splits={"train": DOCUMENTS}, labels=pl.LazyFrame(
        {"label": ["F"], "title": ["x"]}).map_batches(fail))),
    "titles are lists": (4, title(title=[["x"]])),
    "titles are bytes": (4, title(title=[b"\xff"])),
    "labels of titles are bytes": (4, title(label=[b"\xff"])),
    "parents are objects": (4, title(parents=[{"a": 1}])),
    "parents are bytes": (4, title(parents=[[b"\xff"]])),
    "descriptions are lists": (4, title(description=[["x"]])),
    "deprecated is a list": (4, title(deprecated=[[True]])),
    "evidence without columns": (4, Dataset(splits={"train": DOCUMENTS}, evidence=PAIR)),
    "pairs without columns": (4, Dataset(splits={"train": DOCUMENTS}, excluded=PAIR.drop("label"))),
    "pairs that fail": (5, Dataset(splits={"train": DOCUMENTS}, excluded=PAIR.map_batches(fail))),
}  # fmt: skip


@pytest.mark.parametrize(("code", "value"), ODD_DATASETS.values(), ids=ODD_DATASETS)
def test_what_a_dataset_gives_is_told_by_its_name(
    plant: Callable[..., Any], code: int, value: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    strange_plugin.MISBEHAVE["dataset"] = ("give", value)
    with pytest.raises(SystemExit) as left:
        plant("read")
    said = capsys.readouterr().err
    assert left.value.code == code, said
    assert "the dataset 'strange' of the plugin 'stranger'" in said
    assert "a bug" not in said


WRITERS = {  # function that writes into what it is given: what says that it may not
    "fit": "cannot be fitted",
    "score": "fails",
    "load": "cannot be made again",
    "explain": "cannot say why",
    "compute": "the metric 'strange' failed",
    "combine": "the metric 'strange' failed",
    "signal": "the plugin 'stranger' failed",
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_handed_out_cannot_be_written_to(
    plant: Callable[..., Any], trained: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """So one component cannot change the figures of others in silence: numpy refuses, and the
    component is named.
    """
    strange_plugin.MISBEHAVE[name] = "write"
    command = COMMANDS[name]
    with pytest.raises(SystemExit):
        plant(
            command,
            path=trained if command in ("suggest", "eval") else None,
            force=command == "eval",
        )
    said = capsys.readouterr().err
    assert WRITERS[name] in said
    assert "read-only" in said


@pytest.mark.parametrize("name", ["run", "score", "compute", "recognise", "dataset"])
def test_what_a_plugin_prints_is_no_result(
    plant: Callable[..., Any], trained: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    strange_plugin.MISBEHAVE[name] = "print"
    command = COMMANDS[name]
    plant(
        command, path=trained if command in ("suggest", "eval") else None, force=command == "eval"
    )
    written = capsys.readouterr()
    assert written.out == ""
    assert "noise of a plugin" in written.err


@pytest.mark.parametrize(
    "how", ["raise", "exit", *(("give", value) for value in (5, [2], EMPTY))], ids=str
)
@pytest.mark.parametrize("name", ["recognise", "compute", "combine"])
def test_a_component_that_nobody_asked_for_stops_no_command(
    plant: Callable[..., Any], trained: Path, name: str, how: Any
) -> None:
    """It is passed over with a warning that says how to leave its plugin out."""
    strange_plugin.MISBEHAVE[name] = how
    reporter = SilentReporter()
    if name == "recognise":
        plant("mig", "mig.signal=mig", reporter=reporter)
    else:
        result = plant("eval", "eval.metric=[]", path=trained, force=True, reporter=reporter)
        assert "P@1" in result.data["metrics"]
        assert "strangeness" not in result.data["metrics"]
    (warning,) = (text for text in reporter.warnings if "strange" in text)
    assert "it is passed over (PLANT_PLUGINS=-stranger leaves its plugin out)" in warning


def test_a_metric_with_a_name_that_is_taken_is_passed_over(
    plant: Callable[..., Any], trained: Path
) -> None:
    strange_plugin.MISBEHAVE["compute"] = ("give", [metric(name="P@1")])
    reporter = SilentReporter()
    result = plant("eval", "eval.metric=[]", path=trained, force=True, reporter=reporter)
    assert result.data["metrics"]["P@1"]["value"] != 8
    assert any("two metrics are named 'P@1': it is passed over" in one for one in reporter.warnings)


RUDE = """
import sys, strange_plugin
from plant_cli.main import main
from plant_cli.registry import installed
installed().register(strange_plugin, name="stranger")
strange_plugin.MISBEHAVE["run"] = sys.argv[1]
sys.argv = ["plant", "strange", "--format", "json"]
main()
"""


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("descriptor", 0, "noise of a plugin"),
        ("leave", 5, "the plugin 'stranger' failed: ExitCalled: os._exit(3) was called"),
        ("close", 5, "the plugin 'stranger' failed: KeyError: 'strange'"),
        ("interrupt", 130, f"interrupted in the plugin 'stranger', {strange_plugin.__file__}:"),
    ],
)
def test_whoever_takes_the_process_or_its_streams_is_named(how: str, code: int, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUDE, how],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(strange_plugin.__file__).parent)},
    )
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert code != 0 or json.loads(done.stdout) == {"answer": 1}


def test_right_answers_pass(plant: Callable[..., Any], trained: Path) -> None:
    """What the table above relies on: without misbehaviour every one of its commands succeeds."""
    assert plant("strange").data == {"answer": 1}
    assert plant("suggest", path=trained).tables
    assert plant("eval", path=trained, force=True).data["metrics"]["strangeness"]["value"] == 1
    assert plant("mig").tables
    assert plant("network").summary["epochs"] == 1
