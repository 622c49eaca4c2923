"""`plant explain`: why labels have their scores in texts, by the words of the network and of
the scorers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from plant_cli.api import (
    Column,
    DataError,
    Passage,
    Result,
    SplitName,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.data.files import require_free
from plant_cli.data.loading import guess_text
from plant_cli.data.printed_tables import name_label, show_count
from plant_cli.evaluation.marked_words import measure_marks
from plant_cli.evaluation.metric_tables import tabulate_marks
from plant_cli.scoring.excluded_labels import find_named
from plant_cli.scoring.explanations import ExplainedPart, Explanation, explain
from plant_cli.scoring.new_texts import TextReader
from plant_cli.scoring.opened_models import OpenModel, open_in
from plant_cli.scoring.score_sums import LEAST
from plant_cli.scoring.top_labels import raise_if_stopped
from plant_report import ExplainOptions
from plant_report.drawing import require_packages
from plant_report.marked_texts import MARK_LEGEND, mark_text, rank_sentences
from plant_report.page import Contents, MarkedDocument, MarkedLabel, PageSection, write_contents

SHOWN_WHOLE, LONGEST_TEXT = (
    600,
    100_000,
)  # characters of a text that is shown whole, and at most of one that can be unfolded
BEST_SENTENCES, BEST_WORDS = 2, 4  # shown of a text, and of a part
TEXTS_SHOWN = 5  # in tables; JSON and pages have all
LEGEND = (
    "[word]: scorers find it speaks for the label; {word}: the network does; [{word}]: both; "
    "with −: it speaks against. "
    "Words that a fifth of the training documents have are not marked."
)
PAGE_LEAD = [
    "What the network and each scorer add to the log-odds of a label, and the words that they "
    "find it in. The parts and the base, which is "
    "what a label has that nothing speaks for, add up to the log-odds of the score.",
    "This page holds passages of documents.",
]
Explained = tuple[str, str, list[Explanation]]  # id and text of a document, and its labels


def run(context: StageContext, options: ExplainOptions) -> Result:
    """Explain labels of texts on the screen, as JSON or on a page; the run does not change."""
    if options.measure is not None:
        return _measure(context, options, options.measure)
    _require_source(options)
    page = None if options.html is None else Path(options.html)
    if page is not None:
        require_packages()
        require_free(page, force=context.force)
    opened = open_in(context)
    named = find_named(options.label, opened.labels, "--label")
    texts = _read_texts(context, options)
    explained = _explain(context, opened, texts, named, options.top_k)
    if page is not None:
        write_contents(_lay_out_page(explained), page, None, None)
    tables = [
        _lay_out(document, text, one)
        for document, text, found in explained[:TEXTS_SHOWN]
        for one in found
    ]
    more = (
        [f"{len(texts) - TEXTS_SHOWN} more texts: --html, --format jsonl, or --document ID"]
        if len(texts) > TEXTS_SHOWN
        else []
    )
    if tables:
        tables[-1] = replace(tables[-1], notes=[LEGEND, *more])
    return Result(
        tables=tables,
        data=[
            {"doc_id": document, **one.to_json()}
            for document, _, found in explained
            for one in found
        ],
        next_step=None if page is None else f"open {page} in a browser",
    )


def _measure(context: StageContext, options: ExplainOptions, split: SplitName) -> Result:
    """The figures of the marked words of a split."""
    if (
        options.text is not None
        or options.path is not None
        or options.document is not None
        or options.label
    ):
        raise UsageError(
            "--measure looks at all documents of a split",
            where="plant explain",
            expected="no texts and no labels",
            todo="leave them out",
        )
    documents = context.corpus().split(split)
    marks = measure_marks(
        context, context.input("finetune", context.tag), documents, options.scored
    )
    notes = [
        "lost: log-odds, the mean; without them: the more, the more scores rest on these words; "
        "alone: the less, the more they tell",
        f"measured on {show_count(min(options.scored, len(documents)), 'document')} (seed "
        f"{context.machine.seed}); the rest on all "
        f"{len(documents):,}",
    ]
    figures = {words: one.model_dump() for words, one in marks.figures.items()}
    return Result(
        tables=[tabulate_marks(split, marks, notes)],
        data={"split": split, "pairs": marks.pairs, **figures},
    )


def _require_source(options: ExplainOptions) -> None:
    """Refuse no text, two sources, and an empty text."""
    if options.text is not None and (options.path is not None or options.document is not None):
        raise UsageError(
            "both a text and documents are given",
            where="plant explain",
            expected="one of them",
            todo="leave --text out, or the others",
        )
    if options.path is None and options.text is None and options.document is None:
        raise UsageError(
            "there is no text to explain",
            where="plant explain",
            expected="texts in files, --text, or --document with an id of the run's corpus",
            todo="`plant explain --text 'acute bronchitis with cough'`, or `plant explain "
            "new.csv --document 17`",
        )
    if options.text is not None and not options.text.strip():
        raise UsageError(
            "the text is empty",
            where="--text",
            expected="words to explain",
            todo="give a text, or a table of texts",
        )


def _read_texts(context: StageContext, options: ExplainOptions) -> list[tuple[str, str]]:
    """Ids and texts that are asked for."""
    if options.text is not None:
        return [("text", options.text)]
    wanted, where = options.document, options.path or "the run's corpus"
    if options.path is None:
        pairs: Iterator[tuple[str, str]] = islice(_read_corpus(context, wanted), 1)
    else:
        given: dict[str, Any] = {
            "text_column": options.text_column,
            "id_column": options.id_column,
            "encoding": options.encoding,
        }
        pairs = iter(
            zip(
                *TextReader(
                    data=context.data,
                    reporter=context.reporter,
                    guess=partial(guess_text, context),
                    **given,
                ).read(options.path),
                strict=True,
            )
        )
    texts = [(document, text) for document, text in pairs if wanted in (None, document)]
    if not texts:
        raise DataError(
            f"there is no document '{wanted}'",
            where=where,
            expected="the id of a document there",
            todo="check the id, or --id-column",
        )
    return texts


def _read_corpus(context: StageContext, wanted: str | None) -> Iterator[tuple[str, str]]:
    """Id and text of a document of the run's corpus; no split is read that does not have it."""
    corpus = context.corpus()
    for split in corpus.sizes:
        if wanted in corpus.gold_labels(split).doc_ids:
            for part in corpus.stream(split):
                yield from (
                    (document, text)
                    for document, text in zip(part.doc_ids, part.texts, strict=True)
                    if document == wanted
                )


def _explain(
    context: StageContext,
    opened: OpenModel,
    texts: Sequence[tuple[str, str]],
    named: Sequence[int],
    k: int,
) -> list[Explained]:
    """The named labels of each text, or else the suggested ones."""
    ids, given = [document for document, _ in texts], [text for _, text in texts]
    model, reporter = opened.model, context.reporter
    scored = (
        None
        if model.scorers is None
        else model.scorers.score(model.split(given), reporter, "texts")
    )
    trust = None if scored is None else scored.trust
    opened.warn_of_unknown(ids, opened.find_trust(given, trust))
    explained = []
    with reporter.progress("explaining", len(texts), "texts") as task:
        for row, ((document, text), told) in enumerate(
            zip(texts, opened.find_told(given, trust), strict=True)
        ):
            raise_if_stopped(lambda: context.stopping)
            explained.append(
                (
                    document,
                    text,
                    explain(model, text, named or k * told, opened.labels, reporter, scored, row),
                )
            )
            task.advance(1)
    return explained


def _show_text(text: str, one: Explanation) -> list[Passage]:
    """A short text, or the best sentences of a long one and what each adds."""
    if len(text) <= SHOWN_WHOLE:
        return mark_text(text, one, 0, len(text))
    shown: list[Passage] = []
    for begin, end, weight in rank_sentences(text, one)[:BEST_SENTENCES]:
        shown += [
            Passage(text=f"{' ' if shown else ''}({weight:+.1f}) "),
            *mark_text(text, one, begin, end),
        ]
    return shown


def _lay_out(document: str, text: str, one: Explanation) -> Table:
    """What the score of a label is made of."""
    parts = sorted(one.parts, key=lambda part: -part.log_odds)
    rows = [
        (part.name, round(part.log_odds, 2), _list_words(text, part), _shorten_note(part))
        for part in parts
    ]
    return Table(
        title=f"{document}: {name_label(one.label, one.title)}, score {one.score:.3g}",
        columns=[
            Column(name="part"),
            Column(name="log-odds", kind="exact"),
            Column(name="words"),
            Column(name="by"),
        ],
        rows=[
            ("base", round(one.base, 2), "", ""),
            *rows,
            ("together", round(one.log_odds, 2), "", ""),
        ],
        passages=_show_text(text, one),
    )


def _list_words(text: str, part: ExplainedPart) -> str:
    total = Counter[str]()
    for (start, end), weight in zip(part.spans.tolist(), part.weights.tolist(), strict=True):
        total[text[start:end].lower()] += weight
    best = sorted(total.items(), key=lambda item: -abs(item[1]))[:BEST_WORDS]
    rest = part.log_odds - sum(weight for _, weight in best)
    return ", ".join(
        f"{word} {weight:+.2f}"
        for word, weight in [*best, *([("rest", rest)] if best and abs(rest) >= LEAST else [])]
    )


def _shorten_note(part: ExplainedPart) -> str:
    """The note, unless it is a list of words."""
    return (
        ""
        if len(part.spans) and all(word.isalnum() for word in part.note.split(", "))
        else part.note
    )


def _lay_out_page(explained: Sequence[Explained]) -> Contents:
    documents = [
        MarkedDocument(
            doc_id=document,
            summary=f"{len(text):,} characters",
            labels=list(_mark(document, text, found)),
        )
        for document, text, found in explained
    ]
    section = PageSection(name="texts", title="Texts", text=[MARK_LEGEND], documents=documents)
    empty = Table(title="", columns=[], rows=[])
    return Contents(
        title="Why these labels", lead=PAGE_LEAD, headline=empty, sections=[section], footer=[]
    )


def _mark(document: str, text: str, found: Sequence[Explanation]) -> Iterator[MarkedLabel]:
    for one in found:
        table = replace(_lay_out(document, text, one), title=f"Log-odds {one.log_odds:+.2f}")
        whole = (
            mark_text(text, one, 0, min(len(text), LONGEST_TEXT)) if len(text) > SHOWN_WHOLE else []
        )
        if len(text) > LONGEST_TEXT:
            whole.append(
                Passage(text=f" … (the first {LONGEST_TEXT:,} of {len(text):,} characters)")
            )
        yield MarkedLabel(
            name=name_label(one.label, one.title),
            state="",
            score=one.score,
            reason="",
            passages=table.passages,
            table=table,
            whole=whole,
        )
