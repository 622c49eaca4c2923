"""`plant suggest`: labels for new texts, by the trained model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from plant_cli.api import Column, Result, SilentReporter, StageContext, Table, UsageError
from plant_cli.commands.command_options import LABELS_ASSIGNED, LABELS_SUGGESTED, SuggestOptions
from plant_cli.data.files import refuse_replacing, require_free
from plant_cli.data.loading import guess_text
from plant_cli.data.object_stores import fetching, sending
from plant_cli.data.printed_tables import show_count
from plant_cli.data.shares import Shard
from plant_cli.evaluation.systems import find_chosen
from plant_cli.scoring.decisions import ASSIGN, REVIEW
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import TrainedModel
from plant_cli.scoring.new_texts import NewTexts, TextReader
from plant_cli.scoring.opened_models import OpenModel, open_in
from plant_cli.scoring.review_sheets import TEXT_IN_SHEET, sheet_format, write_sheet
from plant_cli.scoring.suggested_documents import SuggestedDocument, Suggesting, round_score
from plant_cli.scoring.suggestion_files import (
    annif_lines,
    count_suggestions,
    find_form,
    frame_texts,
    texts_together,
    write_kept,
    write_suggestions,
)
from plant_cli.scoring.top_labels import Scoring

SHEET = "sheet"  # for people
MANY_TIED = 3  # labels of one text with the same score, from which a line says so


def run(context: StageContext, options: SuggestOptions) -> Result:
    """Score new texts and show the best labels, or write them to a table or a sheet; the run
    does not change.
    """
    refuse_replacing(options.output, options.path)
    refuse_replacing(options.sheet, options.path, options.output)
    with (
        sending(options.output, context.reporter, force=context.force) as output,
        fetching(options.path, context.reporter) as path,
    ):
        return _suggest(context, options.model_copy(update={"output": output, "path": path}))


def _suggest(context: StageContext, options: SuggestOptions) -> Result:
    files = _writable(options, force=context.force, speaks=context.request.speak is not None)
    new = _open_texts(context, options, texts_together(context))
    if options.shard is not None:
        new = new.take(Shard.parse(options.shard))
    model = context.input("finetune", context.tag)
    opened = open_in(context, find_chosen(context, options.thresholds, model))
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
            reasons=options.why or (options.sheet is not None and opened.model.scorers is not None),
        ),
        least=options.threshold,
        assigned=options.assigned,
        kept=0 if options.sheet is None else TEXT_IN_SHEET,
    )
    left_out = [
        name
        for name, there in {"title": any(opened.labels.titles), "why": options.why}.items()
        if not there
    ]
    if files:
        writers = {
            path: write_sheet
            if form == SHEET
            else partial(write_suggestions, form=form, labels=opened.labels.ids, left_out=left_out)
            for path, form in files.items()
        }
        return write_kept(
            context,
            suggesting,
            new,
            writers,
            options.model_dump(
                exclude={"output", "sheet", "to", "path", "micro_batch"}, mode="json"
            ),
        )
    speak = context.request.speak
    answers = suggesting.answer(
        new, SilentReporter() if speak or new.total == 1 else context.reporter
    )
    if speak is not None:
        say = partial(frame_texts, left_out=left_out)
        return Result(
            summary=count_suggestions(
                _speak(
                    answers,
                    speak,
                    annif_lines if options.to else lambda some: [say(some).write_ndjson()],
                )
            )
        )
    return _show(
        list(chain.from_iterable(answers)),
        opened,
        explained=options.why,
        titled="title" not in left_out,
    )


def _speak(
    answers: Iterable[list[SuggestedDocument]],
    speak: Callable[[str], None],
    say: Callable[[list[SuggestedDocument]], Iterable[str]],
) -> Iterator[SuggestedDocument]:
    """Write each block as it comes."""
    for documents in answers:
        speak("".join(say(documents)))
        yield from documents


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
        recursive=options.recursive,
        guess=partial(guess_text, context),
    )
    return reader.open(options.path, size)


def _require_scorers(model: TrainedModel) -> None:
    """Refuse a model without scorers, which cannot say why."""
    if model.combination is None or model.combination.scorers is None:
        raise UsageError(
            "the model has no scorers, which say why",
            where="--why",
            expected="a model that was trained with scorers",
            todo="leave --why out, or train with `plant finetune --scorers "
            "words,titles,neighbours,linear --force`",
        )


def _writable(options: SuggestOptions, *, force: bool, speaks: bool) -> dict[Path, str]:
    """The files to write, and the format of each; refuse what cannot be read or written before
    any work.
    """
    if (options.path is None) == (options.text is None):
        raise UsageError(
            "there is nothing to label"
            if options.path is None
            else "both a file and a text are given",
            where="plant suggest",
            expected="either texts in files or --text",
            todo="`plant suggest new.csv`, or `plant suggest --text 'acute bronchitis with cough'`",
        )
    if options.text is not None and not options.text.strip():
        raise UsageError(
            "the text is empty",
            where="--text",
            expected="words to label",
            todo="give a text, or a table of texts",
        )
    if options.to is not None and options.output is None and not (options.to == "annif" and speaks):
        todo = (
            "add -O FILE, or leave --to out; `--format jsonl --to annif` writes Annif's JSON "
            "to the screen"
        )
        raise UsageError(
            f"no file is named for the format {options.to}",
            where="--to",
            expected="-O with a file",
            todo=todo,
        )
    files = (
        {}
        if options.output is None
        else {Path(options.output): find_form(Path(options.output), options.to, force=force)}
    )
    if options.sheet is not None:
        require_free(Path(options.sheet), force=force)
        sheet_format(Path(options.sheet))
        files[Path(options.sheet)] = SHEET
    return files


def _show(
    documents: list[SuggestedDocument], opened: OpenModel, *, explained: bool, titled: bool
) -> Result:
    """The suggestions on the screen: label and reason in one row."""
    never, thresholds = False, opened.thresholds
    rows: list[list[str | float]] = []
    for one in documents:
        for label, title, score, threshold, band, *why in zip(
            one.labels,
            one.titles,
            one.scores,
            one.thresholds,
            one.bands,
            *([one.why] if explained else []),
            strict=True,
        ):
            never = never or threshold is None
            cut: list[str | float] = (
                [] if explained else ["never" if threshold is None else round_score(threshold)]
            )
            rows.append(
                [
                    one.doc_id,
                    label,
                    *([title or ""] if titled else []),
                    round_score(score),
                    *cut,
                    band,
                    *why,
                ]
            )
    names = [
        "document",
        "label",
        *(["title"] if titled else []),
        "score",
        *([] if explained else ["threshold"]),
        "band",
    ]
    tuned = f"for {thresholds.objective}, chosen on {thresholds.source}"
    notes = [
        show_count(len(rows), "suggestion"),
        f"band: {REVIEW} is to be checked by a person; {ASSIGN}: the score reaches the threshold "
        f"{tuned}; scores are probabilities, "
        f"calibrated on {thresholds.source}",
        *(
            ["never: no threshold of the label reaches the target on validation"]
            if never and not explained
            else []
        ),
        *(
            [
                "why: base, network and scorers add up to the log-odds of the score; the base is "
                "what a label has that nothing speaks for (`plant explain` marks the words)"
            ]
            if explained
            else []
        ),
    ]
    tied = count_tied(documents)
    if tied >= MANY_TIED:
        notes.append(
            f"up to {tied} labels of a text have exactly the same score: calibration does not tell "
            "them apart"
        )
    table = Table(
        title=show_count(len(documents), "text"),
        columns=[
            Column(name=name, kind="exact" if name in ("score", "threshold") else "text")
            for name in (*names, *["why"] * explained)
        ],
        rows=rows,
        notes=notes,
        whole=explained,
    )
    return Result(tables=[table], summary=count_suggestions(documents))


def count_tied(documents: Sequence[SuggestedDocument]) -> int:
    """How many labels of one text have exactly the same score, at most."""
    return max((max(Counter(one.scores).values(), default=0) for one in documents), default=0)
