"""Models without a network for documents of train that they have not seen: train is cut into parts,
and for each part the scorers are fitted, weighed and calibrated on the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.options import FIXED_SEED
from plant_cli.scoring.calibration import calibrate
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.frequency_linear import Ints
from plant_cli.scoring.fused_scorers import Combination
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.top_labels import Rows
from plant_cli.training.scorers_alone import ALONE, StageInputs, fit_chosen, require_fit
from plant_cli.training.training_options import FinetuneOptions


@dataclass(frozen=True, kw_only=True)
class LeftOutModel:
    """A model, and the training documents whose texts and labels it has not seen."""

    model: TrainedModel
    rows: Rows  # of these documents, rising
    train_counts: Ints  # documents that it has seen of each label [L]


def fit_left_out(
    given: StageInputs, options: FinetuneOptions, parts: int
) -> Iterator[LeftOutModel]:
    """For each part of train a model of all others, by the scorers that the options name.

    Nothing that a document or its labels say enters the model that is given with it: neither
    scorers, nor the weights of their sum, nor the calibration, which left-out scores teach.
    """
    train = given.corpus.gold_labels("train")
    part_of = np.random.default_rng(FIXED_SEED).permutation(len(train)) % parts
    for part in range(min(parts, len(train))):
        others = np.flatnonzero(part_of != part)
        fit = require_fit(fit_chosen(given, options, others), given.session.folder)
        gold = csr_array(train.gold[others[fit.rows]])
        gold.sort_indices()
        calibrated = calibrate(
            fit.left_out.as_source(),
            gold,
            fit.scorers.train_counts,
            prior=ALONE,
            by_frequency=True,
            left_out=True,
        )
        combination = Combination(
            scorers=fit.scorers,
            calibration=calibrated.calibration,
            train_counts=fit.scorers.train_counts,
            excluded=find_excluded(options.exclude, given.corpus.labels),
        )
        yield LeftOutModel(
            model=TrainedModel(combination=combination, analyser=given.corpus.analyser),
            rows=np.flatnonzero(part_of == part),
            train_counts=fit.scorers.train_counts,
        )
