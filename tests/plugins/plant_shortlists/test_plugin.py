"""The shortlist that is registered is built from its options and proposes labels."""

import numpy as np
from plant_shortlists import plant_register_shortlists
from scipy.sparse import csr_array

from plant_cli.api import ShortlistInput


def test_the_shortlist_words_proposes_the_label_of_a_word() -> None:
    spec, everything = plant_register_shortlists()
    assert (spec.name, everything.name) == ("words", "none")
    given = ShortlistInput(
        words=("fever", "arm"),
        relevance=csr_array(np.eye(2, dtype=np.float32)),
        docs_with_word=np.array([2, 2]),
        train_counts=np.array([2, 2]),
        documents=4,
    )
    (found,) = spec.build(spec.options(), given).propose(["arm"], csr_array(np.array([[0.0, 1.0]])))
    assert 1 in found
    (every,) = everything.build(everything.options(), given).propose(["arm"], csr_array(np.array([[0.0, 1.0]])))
    assert every.tolist() == [0, 1]
