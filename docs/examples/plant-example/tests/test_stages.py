"""The stages, without a command line: `make_context` gives a stage what `plant` would give it."""

from pathlib import Path
from types import SimpleNamespace

from plant_example import comparison, stage

from plant_cli.api import Result
from plant_cli.testing.contexts import FakeRunner, make_context


def test_rare_labels_are_left_out(tmp_path: Path) -> None:
    labels = SimpleNamespace(ids=["fog", "frost"], titles=["fog reported", None], train_counts=[3, 1])
    corpus = SimpleNamespace(labels=labels, sizes={"train": 4})
    result = stage.run(make_context(tmp_path, corpus=corpus), stage.LabelCardOptions(minimum=2))
    assert (tmp_path / "labels.tsv").read_text() == "fog\t3\n"
    assert result.summary == {"labels": 1}


def test_each_signal_is_run_under_its_name() -> None:
    runner = FakeRunner(result=Result(summary={"kept": 30}))
    result = comparison.run(make_context(runner=runner), comparison.TrySignalsOptions(signal=["mig", "npmi"], k=3))
    assert [(request.flags["mig"], name, tag) for request, name, tag in runner.asked] == [
        ({"signal": "mig", "k": 3}, "mig", "mig"),
        ({"signal": "npmi", "k": 3}, "mig", "npmi"),
    ]
    assert result.tables[0].rows == [("mig", 30), ("npmi", 30)]
