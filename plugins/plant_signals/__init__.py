"""The relevance signals: how strongly a word speaks for a label, from four counts.

This page has their specs and options and registers them: `mig` (mutual information), `chi2`,
`npmi`, `pmi`, `jaccard`, `tf` and `random`, to measure the others by. `association` has the
formulas. Each gets blocks of counts (documents with the word, with the label, with both) and gives
a value for each pair; counting, and what of the values is kept, is the core's (`relevance`).

They need numpy; of the core only `plant_cli.api` and the kit.
"""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import Options, SignalSpec, hookimpl, option


class RandomOptions(Options):
    """Options of the control `random`."""

    seed: int = option(0, "Another seed gives another, equally meaningless, relevance.", ge=0)


@hookimpl
def plant_register_signals() -> Sequence[SignalSpec]:
    """The paper's signal, its ablations, and a control."""
    return [
        SignalSpec(
            name="mig",
            summary="Mutual information gain: how much knowing of the word tells about the "
            "label, in nats.",
            source="PLANT, equation 1; Cover and Thomas 2006, section 2.3",
            score="plant_signals.association:mutual_information",
            quasi_convex=True,
        ),
        SignalSpec(
            name="jaccard",
            summary="Mutual information over the joint entropy of word and label, from 0 "
            "(independent) to 1; favours rare words.",
            source="Kraskov et al. 2005, arXiv:q-bio/0311039; the public code of PLANT's authors",
            score="plant_signals.association:jaccard",
        ),
        SignalSpec(
            name="pmi",
            summary="Pointwise mutual information: how much likelier the word is with the label; "
            "favours rare words.",
            source="Church and Hanks 1990",
            score="plant_signals.association:pointwise",
            signed=True,
            quasi_convex=True,
        ),
        SignalSpec(
            name="npmi",
            summary="Normalised pointwise mutual information, from -1 (never together) to 1 "
            "(only together).",
            source="Bouma 2009",
            score="plant_signals.association:normalised_pointwise",
            signed=True,
            quasi_convex=True,
        ),
        SignalSpec(
            name="chi2",
            summary="Chi-square of word and label against independence.",
            source="Pearson 1900; Yang and Pedersen 1997",
            score="plant_signals.association:chi_square",
            quasi_convex=True,
        ),
        SignalSpec(
            name="tf",
            summary="Term frequency: the word's share of all words in the label's documents (the "
            "paper's ablation).",
            source="PLANT, ablation of the relevance score",
            score="plant_signals.association:term_frequency",
            needs_occurrences=True,
            signed=True,
        ),
        SignalSpec(
            name="random",
            summary="Control: random relevance for words that meet the label; what it gains is "
            "not owed to the signal.",
            options=RandomOptions,
            score="plant_signals.association:random",
            needs_pairs=True,
            signed=True,
        ),
    ]
