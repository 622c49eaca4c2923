"""AUC against scikit-learn and torchmetrics."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from torchmetrics.functional.classification import multilabel_auroc

from plant_cli.evaluation.counters import ScoreTable, compute_value


def test_auc_is_about_labels_with_scores_and_both_sides(random_input, find_spec):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, (20, 6))
    gold[:, 0], gold[:, 1] = 0, 1
    scores = rng.integers(0, 5, (20, 4)).astype(np.float32)  # labels 4 and 5 are unseen in train: they have none
    table = ScoreTable(values=scores, rows=np.arange(20), memory=1000)
    data = replace(random_input(0), gold=csr_array(gold), all_scores=table)
    spec = find_spec("auc")
    macro, micro = spec.compute(data, spec.options())
    assert (macro.name, micro.name) == spec.needs_all_scores
    assert (macro.labels, micro.labels) == (2, None)
    assert macro.remark == "macro-AUC leaves out 2 of 4 labels: every document has them, or none"
    assert compute_value(macro) == pytest.approx(roc_auc_score(gold[:, 2:4], scores[:, 2:]), abs=1e-12)
    assert compute_value(micro) == pytest.approx(roc_auc_score(gold[:, :4].ravel(), scores.ravel()), abs=1e-12)
    torch_scores, target = torch.from_numpy(scores).double(), torch.from_numpy(gold)
    shared = {"num_labels": 2, "average": "macro"}
    assert compute_value(macro) == pytest.approx(float(multilabel_auroc(torch_scores[:, 2:].sigmoid(), target[:, 2:4], **shared)), abs=1e-6)
