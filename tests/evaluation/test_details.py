"""Files per label and per document, value by value; intervals of a label's F1 hold what they promise."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import compute_families
from plant_cli.evaluation.measures import bound_f1, write_documents, write_labels


@pytest.fixture
def data(gold, save, good):
    return build_input(read_predictions(save(good), gold), gold, 0.5, CONVENTIONS["plant"])


def test_counts_of_each_label(data, gold, tmp_path):
    write_labels(tmp_path / "per_label.tsv", data, gold, 0.95)
    rows = {row["label"]: row for row in pl.read_csv(tmp_path / "per_label.tsv", separator="\t").iter_rows(named=True)}
    assert list(rows) == gold.labels
    expected = {"label": "c", "title": "Gamma", "train_count": 6, "test_count": 2, "tp": 2, "fp": 0, "fn": 0}
    shares = {"precision": 1.0, "recall": 1.0, "F1": 1.0, "F1_high": 1.0}
    low = stats.binomtest(2, 2).proportion_ci(method="wilson").low
    assert rows["c"] == expected | shares | {"F1_low": pytest.approx(2 * low / (1 + low), abs=1e-6)}
    assert (rows["x"]["tp"], rows["x"]["fn"], rows["x"]["F1"]) == (0, 1, 0.0)
    assert (rows["d"]["F1"], rows["d"]["F1_low"], rows["d"]["F1_high"]) == (0.0, None, None)  # neither gold nor assigned


def test_values_of_each_document(data, families, tmp_path):
    write_documents(tmp_path / "d.parquet", data, compute_families(families, data), ["1", "2", "3", "4"])
    frame = pl.read_parquet(tmp_path / "d.parquet")
    assert frame["P@1"].to_list() == [1.0, 1.0, 1.0, 0.0]
    assert frame["PSP@1"].to_list()[3] is None  # no gold label that train knows
    assert "micro-F1" not in frame.columns
    assert frame.select("gold", "assigned", "tp").rows() == [(2, 2, 2), (1, 1, 1), (2, 1, 1), (1, 0, 0)]
    assert frame["F1"].to_list() == pytest.approx([1.0, 1.0, 2 / 3, 0.0])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("documents", [3, 12, 60])
def test_intervals_of_f1_cover_the_true_value(share, documents):
    """Documents that have a label as gold, assigned or both: true positives with probability `share`, else split between the two errors."""
    drawn = np.random.default_rng(0).multinomial(documents, [share, (1 - share) / 2, (1 - share) / 2], size=4000).astype(np.float64)
    low, high = bound_f1(drawn[:, 0], drawn[:, 0] + drawn[:, 1], drawn[:, 0] + drawn[:, 2], 0.95)
    true = 2 * share / (1 + share)
    assert ((low <= true) & (true <= high)).mean() > 0.89  # about 0.95; the binomial jumps for few documents
