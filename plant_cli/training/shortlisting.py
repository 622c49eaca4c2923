"""The labels of each document that stage 2 looks at while it trains: those of a shortlist, by default where labels are many."""

from __future__ import annotations

from dataclasses import dataclass

from plant_cli.api import Choice, LabelLoss, PairDecoder, ShortlistSpec, UsageError
from plant_cli.network.candidates import ShortlistedLabels, propose
from plant_cli.scoring.fused_scorers import ScoredDocuments
from plant_cli.training.materials import Inputs, Setup
from plant_cli.training.options import FinetuneOptions

SHORTLIST_FROM = 2000
"""Labels from which a shortlist is used unless the user says otherwise: below, scoring all of them costs little."""
DEFAULT, NONE = "words", "none"
MEASURED = 100
"""The recall of a shortlist is measured on so many of the labels that the network scores highest, at most."""


@dataclass(frozen=True, kw_only=True)
class Shortlisted:
    """What a shortlist proposes."""

    train: ShortlistedLabels  # of each training document; its hard negatives are among them
    validation: ShortlistedLabels  # of each validation document, with all that scorers list; these are scored between epochs
    recall_at: int  # so many of the labels that the network scores highest are looked for among them


def choose_shortlist(options: FinetuneOptions, hard_negatives: int, labels: int, *, relevance: bool) -> Choice | None:
    """The shortlist of stage 2; None where every label is looked at.

    By default there is one if there are many labels, relevance and scorers: labels that are hardly ever proposed learn little, and where a
    network scores alone some of them come first. `shortlist_labels` then also asks for a decoder that scores chosen pairs (`PairDecoder`).

    Args:
        options: of the stage.
        hard_negatives: that the loss looks at for each document; 0: all labels.
        labels: L.
        relevance: whether the run has it, or will have it.

    Raises:
        UsageError: a shortlist is wanted for a loss that looks at all labels.
    """
    if options.shortlist is None:
        useful = hard_negatives and options.chosen_scorers and labels >= SHORTLIST_FROM
        return Choice(name=DEFAULT) if useful and relevance else None
    if options.shortlist.name == NONE:
        return None
    if not hard_negatives:
        raise UsageError(
            "a shortlist is of no use to a loss that looks at all labels",
            where="finetune, option shortlist",
            expected="a loss with hard negatives",
            todo="leave --shortlist out, or --set finetune.loss.hard_negatives=1000",
        )
    return options.shortlist


def shortlist_labels(
    given: Inputs, options: FinetuneOptions, setup: Setup, loss: LabelLoss, scored: ScoredDocuments | None
) -> Shortlisted | None:
    """The labels of train and validation that a shortlist proposes; None where every label is looked at; see `choose_shortlist`."""
    chosen = choose_shortlist(options, loss.hard_negatives, setup.network.labels, relevance=given.statistics is not None)
    if chosen is None or (options.shortlist is None and not isinstance(setup.network.decoder, PairDecoder)):
        return None
    assert given.statistics is not None  # the stage has made sure of them, or they were looked for
    texts = {"train": setup.train.split.texts, "validation": setup.validation.split.texts}
    proposed = propose(given.component(ShortlistSpec, chosen), given.statistics, texts, given.session.reporter)
    train, validation = proposed["train"], proposed["validation"]
    recall = validation.recall(setup.validation.split.gold)
    if scored is not None:
        validation = validation.join(scored.pairs.rows, scored.pairs.labels)
    joined = validation.recall(setup.validation.split.gold)
    given.session.reporter.note(
        f"shortlist {chosen.name}: {train.mean:.0f} of {setup.network.labels} labels are proposed for a training document, on average; for "
        f"those of validation {recall:.1%} of their own labels are. Between epochs {validation.mean:.0f} labels of each are scored, "
        f"{joined:.1%} of its own among them; the figures at the end are of all labels"
    )
    return Shortlisted(train=train, validation=validation, recall_at=min(loss.hard_negatives, MEASURED))
