"""Propensity-scored metrics: their constants, and which labels they know of."""

import math
from dataclasses import replace

import numpy as np
import pytest

from plant_cli.kit.metrics import compute_value


def test_the_constants_of_the_corpus_are_options(make_input, find_spec):
    """PSP@1 by hand with the constants of Wikipedia-500K: labels of 1 and 2 training documents out of 50."""
    spec = find_spec("propensity")
    data = make_input([[1]], [{0, 1}], 2)
    psndcg, psp = spec.compute(data, spec.options(a=0.5, b=0.4, k=[1]))
    assert (psndcg.name, psp.name) == ("PSnDCG@1", "PSP@1")
    q = [1 + (math.log(50) - 1) * 1.4**0.5 * (n + 0.4) ** -0.5 for n in (1, 2)]
    assert compute_value(psp) == compute_value(psndcg) == pytest.approx(q[1] / q[0])


def test_propensities_know_labels_outside_train_only_if_asked_for(make_input, values_of):
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["PSP@1"] == pytest.approx(1.0)
    assert values_of(replace(data, settings={"label_set": "all"}))["PSP@1"] < 1
