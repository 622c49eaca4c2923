"""Conventions: which documents and labels count, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ConventionName = Literal[
    "plant", "paper", "xmlrepo", "caml", "libmultilabel", "annif", "llms4subjects"
]


@dataclass(frozen=True, kw_only=True)
class Convention:
    """Where tools differ."""

    name: ConventionName
    origin: str  # whose way of scoring it is, for help
    summary: str  # one sentence for reports
    # true if documents without gold labels stay in the averages (as 0); false if they are left out
    # and counted
    keeps_empty: bool = True
    settings: Mapping[str, str | float] = field(default_factory=dict)
    """What the metric families read: `precision_by` k or returned, `recall_by` gold or smaller
    (min(k, |Y|)), `label_set` train or all (which labels nDCG and PSP ideals and macro averages
    know of), `macro_f1` all, present or harmonic, `f1_at_k` documents or means (the F1 of the
    mean P@k and the mean R@k), `ndcg_of_empty`.
    """

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Everything on which tools differ, as this convention has it, in one clause each."""
        known = "all labels" if self.settings.get("label_set") == "all" else "the labels of train"
        average = str(self.settings.get("macro_f1", "all"))
        macro = {
            "all": f"the mean over {known}",
            "present": "the mean over labels present",
            "harmonic": "F1 of the mean precision and recall",
        }
        empty = (
            f"; its nDCG is {self.settings.get('ndcg_of_empty', 0):g}" if self.keeps_empty else ""
        )
        returned, smaller = (
            self.settings.get("precision_by") == "returned",
            self.settings.get("recall_by") == "smaller",
        )
        return (
            f"P@k divides by {'the labels predicted, at most k' if returned else 'k'}",
            f"R@k divides by {'the smaller of k and the' if smaller else 'the'} gold labels of "
            "the document",
            *(
                ["F1@k is the F1 of the mean P@k and the mean R@k"]
                if self.settings.get("f1_at_k") == "means"
                else []
            ),
            "a document without gold "
            f"{'counts as 0' if self.keeps_empty else 'is left out'}{empty}",
            f"ideals of nDCG and PSP know of {known}",
            f"macro-F1 is {macro[average]}, 0 where a label has neither gold nor assignment",
            "PSP is divided by the best attainable, propensities are counted on train",
            "ties in score go by label index",
        )


CONVENTIONS: Mapping[ConventionName, Convention] = {
    c.name: c
    for c in (
        Convention(
            name="plant",
            origin="this tool's",
            summary="documents without gold left out; labels unseen in train count in recall, "
            "not in ideals or macro averages",
            keeps_empty=False,
        ),
        Convention(
            name="paper",
            origin="the tables of the PLANT paper",
            summary="R@k divides by min(k, labels of the document); all labels in ideals and "
            "averages",
            keeps_empty=False,
            settings={"recall_by": "smaller", "label_set": "all"},
        ),
        Convention(
            name="xmlrepo",
            origin="the Extreme Classification Repository",
            summary="every document counts; ideals and averages over all labels, those unseen in "
            "train included",
            settings={"label_set": "all"},
        ),
        Convention(
            name="caml",
            origin="CAML, LAAT and PLM-ICD",
            summary="every document counts; macro-F1 is the harmonic mean of mean precision and "
            "mean recall",
            settings={"label_set": "all", "macro_f1": "harmonic"},
        ),
        Convention(
            name="libmultilabel",
            origin="LibMultiLabel",
            summary="every document counts; macro-F1 averages all labels, absent ones as 0",
            settings={"label_set": "all"},
        ),
        Convention(
            name="annif",
            origin="Annif",
            summary="P@k divides by the number of suggestions; nDCG of a document without gold "
            "is 1",
            settings={"label_set": "all", "precision_by": "returned", "ndcg_of_empty": 1.0},
        ),
        Convention(
            name="llms4subjects",
            origin="the shared task LLMs4Subjects",
            summary="every document counts; F1@k is the F1 of the mean P@k and the mean R@k",
            settings={"label_set": "all", "f1_at_k": "means"},
        ),
    )
}
CONVENTION_HELP = (
    f"Whose way of scoring: {', '.join(f'{c.name} ({c.origin})' for c in CONVENTIONS.values())}."
)
