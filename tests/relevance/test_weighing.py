"""The rule of a run, applied to its own training documents, finds what `plant mig` wrote;
applied to others, theirs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders import run_at
from laboratory import CLINIC
from scipy.sparse import csr_array

from plant_cli.api import Request
from plant_cli.data.words import number_words
from plant_cli.registry import installed
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.relevance.relevance_table import LabelEdits, load_relevance, read_edits, write_edits
from plant_cli.relevance.weighing import BY_INFORMATION, make_rule
from plant_cli.runs.runner import RequestRunner

EDITS = "edits"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"signal": "chi2", "k": 7},
        {"signal": "tf", "norm": "global-max", "min_df": 1},
        {"signal": {"name": "random", "seed": 3}, "label_text_weight": 0.25},
        {EDITS: True},
    ],
)
def test_the_rule_finds_the_table_of_the_run(options: dict[str, object], tmp_path: Path) -> None:
    given = {name: value for name, value in options.items() if name != EDITS}
    run_at(tmp_path, "mig", CLINIC[0], flags={"mig": given})
    context = RequestRunner(Request(registry=installed(), run_path=tmp_path)).open("mig")
    corpus, folder = context.corpus(), tmp_path / "mig"
    if EDITS in options:
        first = load_relevance(folder, corpus.labels.hash)
        word = first.words[first.matrix.indices[0]]
        label = corpus.labels.ids[0]
        write_edits(
            folder, {label: LabelEdits(deny=frozenset({word}), allow={first.words[-1]: 0.7})}
        )
    rule = make_rule(corpus, MigOptions(**given), context.component, read_edits(folder))
    split = corpus.gold_labels("train")
    documents = number_words(map(corpus.analyser.spell, corpus.split("train").texts))
    words, matrix = rule.relate(documents, split.gold)
    table = load_relevance(folder, corpus.labels.hash)
    assert words == table.words
    np.testing.assert_array_equal(matrix.toarray(), table.matrix.toarray())
    assert rule.hash != BY_INFORMATION.hash or not options


def test_other_documents_have_their_own_relevance() -> None:
    documents = number_words([["fever", "cough"], ["fever"], ["arm"], ["arm", "cough"]])
    gold = csr_array([[1, 0], [1, 0], [0, 1], [0, 1]])
    words, matrix = BY_INFORMATION.relate(documents, gold)
    assert words == ("arm", "cough", "fever")
    np.testing.assert_array_equal(matrix.toarray(), [[0, 0, 1], [1, 0, 0]])
    words, matrix = BY_INFORMATION.relate(documents.take(np.array([0, 1])), gold[[0, 1]])
    assert words == ("fever",)
    assert not matrix.toarray().any()
