"""The field's metrics: the specs and options of each family.

Every `compute_…` takes predictions beside gold (N documents) and the family's options, and returns
one metric for each name. `of_assigned` measures the labels that are assigned, `of_ranks` the lists
of best labels, and `of_all_scores` the score of every label. Its engine is `auc`: the area under
the ROC curve in many resamples at once.

They need numpy and scipy, which are imported when a metric is computed. Of the core they use
counters of documents and labels (`plant_cli.kit`), which resamples weigh again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import PositiveInt

from plant_cli.api import MetricSpec, NoOptions, Options, hookimpl, option

CUT_OFFS_HELP = "The cut-offs k: how many of a document's highest-scored labels are looked at."
_SOURCES = {
    "hierarchy": "Kiritchenko, Matwin, Nock and Famili 2006, Learning and evaluation in the "
    "presence of class hierarchies, section 3",
    "propensity": "Jain, Prabhu and Varma 2016, Extreme multi-label loss functions, equation 2",
}
_CAPPED = (
    "RP@k: hits among the k highest-scored, divided by the smaller of k and the number of labels."
)
_GAIN = (
    "nDCG@k of gold labels: hits discounted by the logarithm of their rank, relative to the "
    "best order."
)
_PROPENSITY = (
    "PSP@k and PSnDCG@k: precision and discounted hits with rare labels weighted up by their "
    "inverse propensity, "
    "relative to the best attainable."
)
_F1 = (
    "micro and macro precision, recall and F1 (macro-F1 of all labels, labels present, "
    "harmonic), weighted-F1 and "
    "sample-F1 of what is assigned at the threshold."
)
_WHOLE_SETS = (
    "subset-accuracy: documents with just the right labels assigned; Hamming-loss (lower is "
    "better): labels wrongly assigned or missed."
)
_COVERAGE = (
    "coverage@k: share of the labels present that are right at least once among the k "
    "highest-scored of some document."
)
_HIERARCHY = (
    "Where labels have parents: precision, recall and F1 of labels with all that stands "
    "above them, and F1 at each level."
)
_AUC = (
    "macro-AUC and micro-AUC: share of pairs of a right and a wrong label assignment that "
    "scores put in the right order."
)


class PrecisionOptions(Options):
    """Cut-offs of P@k."""

    k: list[PositiveInt] = option([1, 3, 5, 8, 15], CUT_OFFS_HELP)


class RecallOptions(Options):
    """Cut-offs of R@k."""

    k: list[PositiveInt] = option([5, 8, 10, 15, 50], CUT_OFFS_HELP)


class CappedRecallOptions(Options):
    """Cut-offs of RP@k."""

    k: list[PositiveInt] = option([5, 15], CUT_OFFS_HELP)


class GainOptions(Options):
    """Cut-offs of nDCG@k."""

    k: list[PositiveInt] = option([1, 3, 5, 10, 15], CUT_OFFS_HELP)


class TopF1Options(Options):
    """Cut-offs of F1@k."""

    k: list[PositiveInt] = option([5], CUT_OFFS_HELP)


class CoverageOptions(Options):
    """Cut-offs of coverage@k."""

    k: list[PositiveInt] = option([1, 5], CUT_OFFS_HELP)


class PropensityOptions(Options):
    """Cut-offs of PSP@k and PSnDCG@k, and the two constants of the propensity model."""

    k: list[PositiveInt] = option([1, 3, 5], CUT_OFFS_HELP)
    a: float = option(0.55, "A of the propensity model (0.5 Wikipedia-500K, 0.6 Amazon).", gt=0)
    b: float = option(1.5, "B of the propensity model (0.4 Wikipedia-500K, 2.6 Amazon).", gt=0)


# name, function, options, summary
_FAMILIES: Sequence[tuple[str, str, type[Options], str]] = (
    (
        "precision",
        "of_ranks:compute_precision",
        PrecisionOptions,
        "P@k: share of the k highest-scored labels that are right.",
    ),
    (
        "recall",
        "of_ranks:compute_recall",
        RecallOptions,
        "R@k: share of a document's labels that are among the k highest-scored.",
    ),
    ("rp", "of_ranks:compute_capped_recall", CappedRecallOptions, _CAPPED),
    (
        "r-precision",
        "of_ranks:compute_r_precision",
        NoOptions,
        "R-precision: precision at the document's own number of labels.",
    ),
    (
        "map",
        "of_ranks:compute_average_precision",
        NoOptions,
        "MAP: mean over documents of the average precision.",
    ),
    (
        "mrr",
        "of_ranks:compute_reciprocal_rank",
        NoOptions,
        "MRR: mean over documents of 1 / rank of the first right label.",
    ),
    (
        "f1-at-k",
        "of_ranks:compute_top_f1",
        TopF1Options,
        "F1@k: mean over documents of the F1 of the k highest-scored labels.",
    ),
    ("ndcg", "of_ranks:compute_binary_ndcg", GainOptions, _GAIN),
    ("propensity", "of_ranks:compute_weighted", PropensityOptions, _PROPENSITY),
    ("f1", "of_assigned:compute_f1", NoOptions, _F1),
    ("whole-sets", "of_assigned:compute_whole_sets", NoOptions, _WHOLE_SETS),
    ("coverage", "of_ranks:compute_coverage", CoverageOptions, _COVERAGE),
    ("hierarchy", "of_assigned:compute_hierarchical", NoOptions, _HIERARCHY),
    ("auc", "of_all_scores:compute_auc", NoOptions, _AUC),
)


@hookimpl
def plant_register_metrics() -> Sequence[MetricSpec]:
    """The families that `plant eval` always reports."""
    return [
        MetricSpec(
            name=name,
            summary=summary,
            options=options,
            source=_SOURCES.get(name, ""),
            compute=f"plant_metrics.{function}",
            needs_all_scores=("macro-AUC", "micro-AUC") if name == "auc" else (),
        )
        for name, function, options, summary in _FAMILIES
    ]
