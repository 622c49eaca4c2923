"""metrics.json as readers see it."""

import json

import pytest

from plant_cli.api import ArtefactError
from plant_cli.evaluation.results import Bound, read_metrics

CONTENT = {
    "convention": "plant",
    "system": "finetune",
    "split": "test",
    "documents": 2,
    "gold": "a",
    "threshold": "0.5",
    "seed": 0,
    "level": 0.95,
    "metrics": {"P@1": {"value": 0.5, "low": None, "high": None}},
    "bins": {"1-5": {"labels": 3, "R@10": {"value": 0.25, "low": 0.1, "high": 0.4}}},
    "calibration": {"ECE": 0.1, "bins": [{"pairs": 3, "probability": 0.2, "right": 0.1}], "added": 1},
    "later": "unknown keys are passed over",
}


def test_metrics_of_bins_have_their_range_in_the_name(tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps(CONTENT))
    found = read_metrics(tmp_path)
    assert found.all_metrics() == {"P@1": Bound(value=0.5), "R@10[1-5]": Bound(value=0.25, low=0.1, high=0.4)}
    assert found.bins["1-5"]["labels"] == 3
    assert found.calibration is not None
    assert found.calibration.ECE == 0.1


@pytest.mark.parametrize("change", [{"metrics": None}, {"documents": "many"}, {"split": "dev"}, {"bins": {"1-5": {"R@10": "high"}}}])
def test_what_no_evaluation_writes_is_refused(tmp_path, change):
    (tmp_path / "metrics.json").write_text(json.dumps(CONTENT | change))
    with pytest.raises(ArtefactError, match="is damaged") as raised:
        read_metrics(tmp_path)
    assert next(iter(change)) in raised.value.where


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArtefactError, match="is missing"):
        read_metrics(tmp_path)
