"""`plant audit`: labels of the run's documents that may be wrong, and labels that may be missing,
by models that have not seen these documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from plant_cli.api import (
    Column,
    Corpus,
    Interrupted,
    Result,
    SilentReporter,
    Split,
    SplitName,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.data.files import require_free
from plant_cli.data.printed_tables import show_count
from plant_cli.runs.folder import StageFolder
from plant_cli.runs.session import open_session
from plant_cli.scoring.explanations import explain
from plant_cli.scoring.frequency_linear import Ints
from plant_cli.scoring.models import TrainedModel, has_network, load_model
from plant_cli.scoring.opened_models import find_source
from plant_cli.scoring.review_sheets import TEXT_IN_SHEET, sheet_format, write_sheet
from plant_cli.scoring.score_sums import explain_labels
from plant_cli.scoring.suggested_documents import SuggestedDocument, find_heading, round_score
from plant_cli.scoring.top_labels import Scoring
from plant_cli.training.scorers_alone import StageInputs, find_rule
from plant_cli.training.training_options import FinetuneOptions
from plant_review import AuditOptions
from plant_review.gold_doubts import (
    DOUBTFUL,
    LACKING,
    DoubtKind,
    LearnedFrom,
    RankedDoubts,
    find_doubts,
)
from plant_review.left_out_models import fit_left_out

ROWS_IN_SHEET, ROWS_ON_SCREEN = 100, 10  # of each kind
HEADS_OF_DOUBTS = {
    DOUBTFUL: "Doubtful: labels that documents have, the most doubtful first",
    LACKING: "Missing? Labels that documents do not have, the most probable first",
}


def run(context: StageContext, options: AuditOptions) -> Result:
    """Judge the labels of train and validation, and show the doubtful and the missing ones or
    write them to a sheet; the run does not change.
    """
    sheet = None if options.output is None else Path(options.output)
    if sheet is not None:
        require_free(sheet, force=context.force)
        sheet_format(sheet)
    folder = context.input("finetune", context.tag)
    audit = _Audit(
        context=context,
        corpus=context.corpus(folder),
        folder=folder,
        options=options,
        limit=options.limit or (ROWS_ON_SCREEN if sheet is None else ROWS_IN_SHEET),
        kept=TEXT_IN_SHEET if sheet is None or sheet_format(sheet) != ".jsonl" else None,
    )
    try:
        found = audit.find()
    except Interrupted as error:
        error.todo = "run the same command again: nothing was written"
        raise
    if sheet is None:
        return _show(found)
    write_sheet(sheet, chain.from_iterable(found.values()))
    counts = {kind: len(documents) for kind, documents in found.items()}
    context.reporter.note(
        f"{show_count(sum(counts.values()), 'label')} written to {sheet}: "
        f"{counts[DOUBTFUL]} that may be wrong, {counts[LACKING]} that may be missing"
    )
    return Result(
        data={"written": str(sheet), **counts},
        summary={str(kind): count for kind, count in counts.items()},
        next_step=f"write accept or reject into the sheet, then plant review import {sheet}",
    )


@dataclass(frozen=True, kw_only=True)
class _Audit:
    """Documents of a run, judged by models that have not seen them."""

    context: StageContext
    corpus: Corpus
    folder: Path  # of the model
    options: AuditOptions
    limit: int  # pairs of each kind
    kept: int | None  # characters of a text; None: all

    def find(self) -> dict[DoubtKind, list[SuggestedDocument]]:
        """The most doubtful pairs of each kind, a document each."""
        found: dict[DoubtKind, list[tuple[float, SuggestedDocument]]] = {DOUBTFUL: [], LACKING: []}
        for model, split, learned in self._judges():
            scoring = Scoring(
                name=split.name,
                k=1,
                batch=self.options.micro_batch,
                reporter=SilentReporter(),
                should_stop=lambda: self.context.stopping,
            )
            for kind, ranked in find_doubts(model, split, learned, scoring, self.limit).items():
                full = len(found[kind]) == self.limit
                ranked = ranked.above(found[kind][-1][0] if full else -np.inf)
                named = self._name(kind, ranked, model, split)
                both = found[kind] + list(zip(ranked.strengths.tolist(), named, strict=True))
                found[kind] = sorted(both, key=lambda pair: -pair[0])[: self.limit]
        return {kind: [document for _, document in pairs] for kind, pairs in found.items()}

    def _judges(self) -> Iterator[tuple[TrainedModel, Split, LearnedFrom]]:
        """Models with documents that they have not seen, and what they have learned from."""
        wanted: Sequence[SplitName] = (
            ("train", "validation") if self.options.split is None else (self.options.split,)
        )
        for name in wanted:
            if name == "train":
                yield from self._leave_out()
            elif self.corpus.has_split(name):
                source = replace(find_source(self.context, self.folder), corpus=self.corpus)
                learned = LearnedFrom(
                    documents=self.corpus.sizes["train"],
                    counts=np.asarray(self.corpus.labels.train_counts),
                )
                yield load_model(source), self.corpus.split(name), learned

    def _leave_out(self) -> Iterator[tuple[TrainedModel, Split, LearnedFrom]]:
        record = StageFolder(self.folder).record()
        options = FinetuneOptions() if record is None else FinetuneOptions(**record.options)
        if not options.chosen_scorers:
            raise UsageError(
                "the model has no scorers, so none can be fitted without a part of train",
                where=str(self.folder),
                expected="a model with scorers, beside its network or alone",
                todo="plant audit --split validation, or train with scorers (--scorers words,"
                "titles,neighbours,linear)",
            )
        context, train = self.context, self.corpus.split("train")
        given = StageInputs(
            corpus=self.corpus,
            machine=context.machine,
            session=replace(open_session(context), reporter=SilentReporter()),
            component=context.component,
            rule=find_rule(context, options),
        )
        with context.reporter.progress("judging train", len(train), "documents") as task:
            for left in fit_left_out(given, options, self.options.folds):
                learned = LearnedFrom(
                    documents=len(train) - len(left.rows), counts=left.train_counts
                )
                yield left.model, train.take(left.rows), learned
                task.advance(len(left.rows))

    def _explain(
        self, model: TrainedModel, split: Split, texts: Sequence[str], labels: Sequence[Ints]
    ) -> list[list[str]]:
        """The reasons for some labels of each text."""
        if model.scorers is None or (split.name != "train" and has_network(self.folder)):
            reporter, index = SilentReporter(), self.corpus.labels
            return [
                [why.reason for why in explain(model, text, own.tolist(), index, reporter)]
                for text, own in zip(texts, labels, strict=True)
            ]
        assert model.combination is not None  # it has scorers
        scored = model.scorers.score(model.split(texts), SilentReporter(), split.name)
        explained = explain_labels(scored, model.combination, labels)
        return [[reason.text for reason in reasons] for reasons in explained]

    def _name(
        self, kind: DoubtKind, ranked: RankedDoubts, model: TrainedModel, split: Split
    ) -> list[SuggestedDocument]:
        """The pairs as a sheet shows them, with the reasons of the model."""
        index, rows = self.corpus.labels, np.unique(ranked.rows)
        labels = [ranked.labels[ranked.rows == row] for row in rows]
        reasons = dict[tuple[int, int], str]()
        texts = [split.texts[row] for row in rows.tolist()]
        for row, own, whys in zip(
            rows, labels, self._explain(model, split, texts, labels), strict=True
        ):
            reasons |= {(int(row), int(label)): why for label, why in zip(own, whys, strict=True)}
        pairs = zip(ranked.rows.tolist(), ranked.labels.tolist(), strict=True)
        return [
            SuggestedDocument(
                doc_id=split.doc_ids[row],
                labels=[index.ids[label]],
                titles=[index.titles[label]],
                scores=[probability],
                bands=[kind],
                evidence=[reasons[row, label]],
                heading=find_heading(split.texts[row]),
                text=split.texts[row][: self.kept],
            )
            for (row, label), probability in zip(
                pairs, expit(ranked.log_odds).tolist(), strict=True
            )
        ]


def _show(found: dict[DoubtKind, list[SuggestedDocument]]) -> Result:
    names = ("document", "label", "title", "probability", "why")
    listed: dict[DoubtKind, list[list[Any]]] = {
        kind: [
            [
                one.doc_id,
                one.labels[0],
                one.titles[0] or "",
                round_score(one.scores[0]),
                one.evidence[0],
            ]
            for one in documents
        ]
        for kind, documents in found.items()
    }
    note = (
        "probability: by a model that has not seen the document; why: what makes up its log-odds "
        "(`plant explain` says more)"
    )
    tables = [
        Table(
            title=HEADS_OF_DOUBTS[kind],
            columns=[
                Column(name=name, kind="exact" if name == "probability" else "text")
                for name in names
            ],
            rows=rows,
            notes=[note],
            whole=True,
        )
        for kind, rows in listed.items()
    ]
    data = {
        kind: [dict(zip(names, row, strict=True)) for row in rows] for kind, rows in listed.items()
    }
    return Result(
        tables=tables,
        data=data,
        summary={kind: len(rows) for kind, rows in listed.items()},
        next_step="plant audit -O doubts.xlsx writes a sheet to decide in",
    )
