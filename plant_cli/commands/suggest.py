"""`plant suggest`: labels for new texts, by the trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from plant_cli.api import Column, Result, SilentReporter, StageContext, Table, UsageError
from plant_cli.commands.command_options import LABELS_ASSIGNED, LABELS_SUGGESTED, SuggestOptions
from plant_cli.data.files import hash_file, require_free
from plant_cli.data.records import STAGE_FILE
from plant_cli.evaluation.systems import find_chosen
from plant_cli.report.text import show_count
from plant_cli.scoring.decisions import ASSIGN, REVIEW
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import TrainedModel, has_network
from plant_cli.scoring.new_texts import NewTexts, TextReader
from plant_cli.scoring.opened_models import OpenModel, open_in
from plant_cli.scoring.suggested_documents import SuggestedDocument, Suggesting, keeping
from plant_cli.scoring.suggestion_files import find_form, frame_texts, write_suggestions
from plant_cli.scoring.top_labels import Scoring

TEXTS_TOGETHER = 1000  # that are read and scored together; a network takes this share of them
NETWORK_SHARE = 8


def run(context: StageContext, options: SuggestOptions) -> Result:
    """Score new texts and show the best labels, or write them to a table; the run does not change."""
    output = _writable(options, force=context.force)
    slow = has_network(context.input("finetune", context.tag))
    new = _open_texts(context, options, TEXTS_TOGETHER // (NETWORK_SHARE if slow else 1))
    opened = open_in(context, None if options.thresholds is None else find_chosen(context, options.thresholds))
    if options.why:
        _require_scorers(opened.model)
    suggesting = Suggesting(
        opened=opened,
        scoring=Scoring(
            name="texts",
            k=options.top_k or (LABELS_ASSIGNED if options.assigned else LABELS_SUGGESTED),
            batch=options.micro_batch,
            reporter=SilentReporter(),
            should_stop=lambda: context.stopping,
            excluded=find_excluded(options.exclude, opened.labels),
            reasons=options.why,
        ),
        least=options.threshold,
        assigned=options.assigned,
    )
    left_out = [name for name, there in {"title": any(opened.labels.titles), "why": options.why}.items() if not there]
    if output is not None:
        counted = _write(context, options, suggesting, new, output, left_out)
        return Result(data={"written": str(output), **counted}, summary=counted)
    speak = context.request.speak
    answers = suggesting.answer(new, SilentReporter() if speak or new.total == 1 else context.reporter)
    if speak is not None:
        return Result(summary=_count(_speak(answers, speak, left_out)))
    return _show(list(chain.from_iterable(answers)), opened, explained=options.why, titled="title" not in left_out)


def _speak(answers: Iterable[list[SuggestedDocument]], speak: Callable[[str], None], left_out: list[str]) -> Iterator[SuggestedDocument]:
    """Write each block as it comes."""
    for documents in answers:
        speak(frame_texts(documents, left_out).write_ndjson())
        yield from documents


def _write(
    context: StageContext, options: SuggestOptions, suggesting: Suggesting, new: NewTexts, output: Path, left_out: list[str]
) -> dict[str, int]:
    """Write the output once all documents are done, which are kept beside it until then."""
    record = context.input("finetune", context.tag) / STAGE_FILE
    made_by = {"model": hash_file(record), "options": options.model_dump(exclude={"output", "path", "micro_batch"}, mode="json")}
    with keeping(output, made_by, context.reporter, anew=context.force) as kept:
        before = kept.number
        for documents in suggesting.answer(replace(new, blocks=kept.skip(new.blocks)), context.reporter, before):
            kept.add(documents)
        context.confirm_inputs()
        write_suggestions(output, kept, left_out)
        counted = _count(kept)
    context.reporter.note(
        f"{show_count(counted['suggestions'], 'suggestion')} for {show_count(counted['documents'], 'text')} written to {output}: "
        f"{counted[ASSIGN]:,} to assign, {counted[REVIEW]:,} to review"
    )
    return counted


def _count(documents: Iterable[SuggestedDocument]) -> dict[str, int]:
    counted = dict.fromkeys(("documents", "suggestions", ASSIGN, REVIEW), 0)
    for one in documents:
        counted["documents"] += 1
        counted["suggestions"] += len(one.labels)
        for band in (ASSIGN, REVIEW):
            counted[band] += one.bands.count(band)
    return counted


def _open_texts(context: StageContext, options: SuggestOptions, size: int) -> NewTexts:
    if options.path is None:
        return NewTexts(blocks=iter([(["text"], [options.text or ""])]), total=1)
    reader = TextReader(
        data=context.data,
        reporter=context.reporter,
        text_column=options.text_column,
        id_column=options.id_column,
        encoding=options.encoding,
        lines=options.lines,
    )
    return reader.open(options.path, size)


def _require_scorers(model: TrainedModel) -> None:
    """Refuse a model without scorers, which cannot say why."""
    if model.combination is None or model.combination.scorers is None:
        raise UsageError(
            "the model has no scorers, which say why",
            where="--why",
            expected="a model that was trained with scorers",
            todo="leave --why out, or train with `plant finetune --scorers words,titles,neighbours,linear --force`",
        )


def _writable(options: SuggestOptions, *, force: bool) -> Path | None:
    """The path of the output; refuse what cannot be read or written before any work."""
    if (options.path is None) == (options.text is None):
        raise UsageError(
            "there is nothing to label" if options.path is None else "both a file and a text are given",
            where="plant suggest",
            expected="either texts in files or --text",
            todo="`plant suggest new.csv`, or `plant suggest --text 'acute bronchitis with cough'`",
        )
    if options.text is not None and not options.text.strip():
        raise UsageError("the text is empty", where="--text", expected="words to label", todo="give a text, or a table of texts")
    output = None if options.output is None else Path(options.output)
    if output is not None:
        if options.path is not None and output.resolve() == Path(options.path).resolve():
            raise UsageError(
                "the suggestions would replace the texts", where=str(output), expected="another file", todo="choose another one with -O"
            )
        require_free(output, force=force)
        find_form(output)
    return output


def _show(documents: list[SuggestedDocument], opened: OpenModel, *, explained: bool, titled: bool) -> Result:
    """The suggestions on the screen: label and reason in one row."""
    never, thresholds = False, opened.thresholds
    rows: list[list[str | float]] = []
    for one in documents:
        for label, title, score, threshold, band, *why in zip(
            one.labels, one.titles, one.scores, one.thresholds, one.bands, *([one.why] if explained else []), strict=True
        ):
            never = never or threshold is None
            cut: list[str | float] = [] if explained else ["never" if threshold is None else _round(threshold)]
            rows.append([one.doc_id, label, *([title or ""] if titled else []), _round(score), *cut, band, *why])
    names = ["document", "label", *(["title"] if titled else []), "score", *([] if explained else ["threshold"]), "band"]
    tuned = (
        f"for {thresholds.objective}, chosen on {thresholds.source}" if thresholds.review is not None else f"tuned on {thresholds.source}"
    )
    notes = [
        show_count(len(rows), "suggestion"),
        f"band: {REVIEW} is to be checked by a person; {ASSIGN}: the score reaches the threshold {tuned}; scores are probabilities, "
        f"calibrated on {thresholds.source}",
        *(["never: no threshold of the label reaches the target on validation"] if never and not explained else []),
        *(["why: what network and scorers add to the log-odds of an average label, and by what"] if explained else []),
    ]
    table = Table(
        title=show_count(len(documents), "text"),
        columns=[Column(name=name, kind="exact" if name in ("score", "threshold") else "text") for name in (*names, *["why"] * explained)],
        rows=rows,
        notes=notes,
        whole=explained,
    )
    return Result(tables=[table], summary=_count(documents))


def _round(score: float) -> float:
    """Three significant digits, so that small scores differ; only a score of exactly 1 is shown as 1."""
    rounded = float(f"{score:.3g}")
    return rounded if rounded < 1 or score >= 1 else round(1 - float(f"{1 - score:.1g}"), 12)
