"""Labels by what a person types: exact names first, then beginnings, then beginnings of words,
then the rest; frequent ones first. Misspelt words find the words that are most like them.
"""

from __future__ import annotations

import pytest
from builders import label_table
from plant_serving.label_search import LabelSearch

TITLES = ["Cat", "Cathedrals", "Wild cat", "Education", "Cat food", None, "Ärzte"]
LABELS = label_table(
    *"abcdefg",
    titles=TITLES,
    counts=[1, 2, 3, 9, 4, 5, 6],
    alternatives=[["Felis"], [], [], [], [], ["cat person"], ["physicians\u00b9"]],
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("cat", "afebcd"),
        ("CAT", "afebcd"),
        ("cat food", "e"),
        ("food cat", "e"),
        ("felis", "a"),
        ("ÄRZ", "g"),
        ("b", "b"),
        (" ", "dgfecba"),
        ("dog", ""),
        ("cat dog", ""),
        ("catedrals", "b"),
        ("catehd", "b"),  # the beginning of a word
        ("edcuation", "d"),
        ("widl cat", "c"),
        ("foood cat", "e"),
        ("arzte", "g"),
        ("?!", ""),
    ],
)
def test_labels_are_found_best_first(query: str, found: str) -> None:
    assert "".join(LABELS.ids[place] for place in LabelSearch(LABELS).find(query, 10)) == found
    assert LabelSearch(LABELS).find(query, 1) == LabelSearch(LABELS).find(query, 10)[:1]
