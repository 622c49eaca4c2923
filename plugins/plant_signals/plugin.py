"""Registers the signals; numpy is imported when the first one is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plant_cli.api import Counts, SignalSpec, hookimpl
from plant_signals.options import RandomOptions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def _later(function: str) -> Callable[[Counts, Any], npt.NDArray[np.float64]]:
    def score(counts: Counts, options: Any) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = getattr(import_module("plant_signals.scores"), function)(counts, options)
        return values

    return score


@hookimpl
def plant_register_signals() -> Sequence[SignalSpec]:
    """The paper's signal, its ablations, and a control."""
    return [
        SignalSpec(
            name="mig",
            summary="Mutual information gain: how much knowing of the word tells about the label, in nats.",
            source="PLANT, equation 1; Cover and Thomas 2006, section 2.3",
            score=_later("mutual_information"),
            quasi_convex=True,
        ),
        SignalSpec(
            name="jaccard",
            summary="Mutual information over the joint entropy of word and label, from 0 (independent) to 1; favours rare words.",
            source="Kraskov et al. 2005, arXiv:q-bio/0311039; the public code of PLANT's authors",
            score=_later("jaccard"),
        ),
        SignalSpec(
            name="pmi",
            summary="Pointwise mutual information: how much likelier the word is with the label; favours rare words.",
            source="Church and Hanks 1990",
            score=_later("pointwise"),
            signed=True,
            quasi_convex=True,
        ),
        SignalSpec(
            name="npmi",
            summary="Normalised pointwise mutual information, from -1 (never together) to 1 (only together).",
            source="Bouma 2009",
            score=_later("normalised_pointwise"),
            signed=True,
            quasi_convex=True,
        ),
        SignalSpec(
            name="chi2",
            summary="Chi-square of word and label against independence.",
            source="Pearson 1900; Yang and Pedersen 1997",
            score=_later("chi_square"),
            quasi_convex=True,
        ),
        SignalSpec(
            name="tf",
            summary="Term frequency: the word's share of all words in the label's documents (the paper's ablation).",
            source="PLANT, ablation of the relevance score",
            score=_later("term_frequency"),
            needs_occurrences=True,
            signed=True,
        ),
        SignalSpec(
            name="random",
            summary="Control: random relevance for words that meet the label; what it gains is not owed to the signal.",
            options=RandomOptions,
            score=_later("random"),
            needs_pairs=True,
            signed=True,
        ),
    ]
