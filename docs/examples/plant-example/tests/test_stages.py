"""The stage without a command line: `make_context` gives it what `plant` would give it."""

from pathlib import Path
from types import SimpleNamespace

from plant_example import stage

from plant_cli.testing.contexts import make_context


def test_rare_labels_are_left_out(tmp_path: Path) -> None:
    labels = SimpleNamespace(
        ids=["fog", "frost"], titles=["fog reported", None], train_counts=[3, 1]
    )
    context = make_context(tmp_path, corpus=SimpleNamespace(labels=labels))
    result = stage.run(context, stage.LabelCardOptions(minimum=2))
    assert (tmp_path / "labels.tsv").read_text() == "fog\t3\n"
    assert result.summary == {"labels": 1}
