"""The conventions, their enumeration and their help."""

from typing import get_args

from plant_cli.evaluation.conventions import CONVENTIONS, HELP, ConventionName


def test_the_enumeration_holds_every_convention():
    assert list(CONVENTIONS) == list(get_args(ConventionName))
    assert all(name == convention.name and convention.summary for name, convention in CONVENTIONS.items())


def test_every_convention_says_all_that_it_assumes():
    assert CONVENTIONS["plant"].assumptions == (
        "P@k divides by k",
        "R@k divides by the gold labels of the document",
        "a document without gold is left out",
        "ideals of nDCG and PSP know of the labels of train",
        "macro-F1 is the mean over the labels of train, 0 where a label has neither gold nor assignment",
        "PSP is divided by the best attainable, propensities are counted on train",
        "ties in score go by label index",
    )
    assert all("ideals of nDCG and PSP know of all labels" in c.assumptions for name, c in CONVENTIONS.items() if name != "plant")
    annif, caml, paper = (CONVENTIONS[name].assumptions for name in ("annif", "caml", "paper"))
    assert annif[0] == "P@k divides by the labels predicted, at most k"
    assert annif[2] == "a document without gold counts as 0; its nDCG is 1"
    assert caml[4].startswith("macro-F1 is F1 of the mean precision and recall")
    assert paper[1] == "R@k divides by the smaller of k and the gold labels of the document"


def test_the_help_says_whose_way_each_is():
    assert HELP.startswith("Whose way of scoring: plant (this tool's), paper (")
    assert all(f"{name} (" in HELP for name in CONVENTIONS)
