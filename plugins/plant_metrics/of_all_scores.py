"""The area under the ROC curve, from the score of every label for every document; its engine
imports torch, other metrics do without.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import MetricInput, WeightedMetric
from plant_metrics.auc import average_auc, pooled_auc


def compute_auc(data: MetricInput, options: object) -> list[WeightedMetric]:
    """macro-AUC, the mean over labels that some documents have and others have not, and micro-AUC,
    of all documents and labels as one pool.

    Both are about the labels that have scores: those of train. A resample averages the labels that
    it gives both sides.
    """
    scores = data.all_scores
    assert scores is not None, "the family declares needs_all_scores"
    documents, labels = scores.shape
    gold = csr_array(data.gold[:, :labels])
    counts = np.asarray(gold.sum(axis=0))
    averaged = int(((counts > 0) & (counts < documents)).sum())
    left_out = (
        f"macro-AUC leaves out {labels - averaged} of {labels} labels: every document has them, "
        "or none"
        if averaged < labels
        else ""
    )
    return [
        WeightedMetric(
            name="macro-AUC",
            documents=documents,
            compute=partial(average_auc, scores, gold),
            labels=averaged,
            remark=left_out,
        ),
        WeightedMetric(
            name="micro-AUC", documents=documents, compute=partial(pooled_auc, scores, gold)
        ),
    ]
