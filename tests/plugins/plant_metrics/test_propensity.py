"""Propensity-scored metrics: their constants, and which labels they know of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from napkinxc.metrics import Jain_et_al_inverse_propensity, psndcg_at_k, psprecision_at_k
from plant_metrics.propensity import inverse_propensities
from scipy.sparse import csr_array

from plant_cli.evaluation.counters import compute_value


def test_the_constants_of_the_corpus_are_options(make_input, find_spec):
    """PSP@1 by hand with the constants of Wikipedia-500K: labels of 1 and 2 training documents out of 50."""
    spec = find_spec("propensity")
    data = make_input([[1]], [{0, 1}], 2)
    psndcg, psp = spec.compute(data, spec.options(a=0.5, b=0.4, k=[1]))
    assert (psndcg.name, psp.name) == ("PSnDCG@1", "PSP@1")
    q = [1 + (math.log(50) - 1) * 1.4**0.5 * (n + 0.4) ** -0.5 for n in (1, 2)]
    assert compute_value(psp) == compute_value(psndcg) == pytest.approx(q[1] / q[0])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("constants", [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_equality_with_napkinxc(seed, constants, random_input, find_spec):
    """PSP@k in any case; PSnDCG@k where all documents have the same number of labels: napkinXC divides both sides by the binary ideal."""
    rng = np.random.default_rng(seed)
    gold = np.zeros((20, 12), dtype=np.int64)
    np.put_along_axis(gold, np.argsort(rng.random((20, 12)), axis=1)[:, :5], 1, axis=1)
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    same = replace(data, gold=csr_array(gold))
    a, b = constants
    weights = 1 + (math.log(data.train_documents) - 1) * (b + 1) ** a * (data.train_counts + b) ** -a
    spec = find_spec("propensity")

    def values(given):
        return {m.name: compute_value(m) for m in spec.compute(given, spec.options(a=a, b=b, k=[1, 3, 5]))}

    def members(given):
        return [np.flatnonzero(row).tolist() for row in given.gold.toarray()]

    for theirs, name, given in ((psprecision_at_k, "PSP", data), (psndcg_at_k, "PSnDCG", same)):
        expected = theirs(members(given), given.top.tolist(), weights, k=5)
        assert [values(given)[f"{name}@{k}"] for k in (1, 3, 5)] == pytest.approx([expected[0], expected[2], expected[4]])


def test_propensities_follow_napkinxc(random_input, find_spec):
    train = (np.random.default_rng(0).random((100, 12)) < 0.3).astype(np.int64)
    train[0] = 1
    data = replace(random_input(0), train_counts=train.sum(axis=0), train_documents=100)
    assert inverse_propensities(data, find_spec("propensity").options()) == pytest.approx(Jain_et_al_inverse_propensity(train))


def test_propensities_know_labels_outside_train_only_if_asked_for(make_input, values_of):
    data = make_input([[1, 2]], [{0, 1}], 3, train_counts=np.array([0, 5, 5]))
    assert values_of(data)["PSP@1"] == pytest.approx(1.0)
    assert values_of(replace(data, settings={"label_set": "all"}))["PSP@1"] < 1
