"""`plant data check`: look for what may be wrong with a corpus, and write a cleaned copy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import polars as pl

from plant_cli.api import (
    BackboneSpec,
    Choice,
    Column,
    DataError,
    DataSection,
    Dataset,
    MachineSection,
    Result,
    SplitName,
    StageContext,
    Table,
)
from plant_cli.data.checks import LEVELS, Finding, examine_documents, find_unseen_labels
from plant_cli.data.documents import SplitTexts, read_frames, tidy
from plant_cli.data.evidence import collect_evidence, read_evidence
from plant_cli.data.loading import load_dataset
from plant_cli.data.tables import guard_cells, write_table
from plant_cli.data.vocabularies import read_titles
from plant_cli.scoring.forecast import find_effort
from plant_cli.scoring.reading_checks import find_cut_texts, find_languages
from plant_data import CheckOptions
from plant_data.near_duplicates import Signatures, digest_and_sign, find_near_duplicates
from plant_data.repair import repair, repair_evidence, write_corpus
from plant_data.thorough_checks import (
    THOROUGH,
    find_cut_off,
    find_near_labels,
    find_odd_label_counts,
    find_unknown_labels,
)


def check_corpus(context: StageContext, options: CheckOptions) -> Result:
    """Examine the corpus, and with --fix write a cleaned copy and examine that too."""
    dataset = load_dataset(context, context.data, tell=context.reporter.warn)
    findings = list(
        _examine(context, dataset, *digest_and_sign(dataset, context.reporter), options.backbone)
    )
    findings.sort(key=lambda finding: LEVELS.index(finding.level))
    name = context.data.path or context.data.dataset.name
    table = Table(
        title=f"Check of {name}",
        columns=[
            Column(name="level"),
            Column(name="count", kind="count"),
            *(Column(name=n) for n in ("what", "where", "what to do")),
        ],
        rows=[(f.level, f.count, f.what, f.where, f.todo) for f in findings],
        notes=[] if findings else ["nothing is wrong"],
    )
    content = {"findings": [asdict(finding) for finding in findings], "written": list[str]()}
    wrong = _choose_wrong(findings, warnings=options.fail_on_warning)
    if options.fix is None:
        failure = (
            _fail(len(wrong), str(name), "see what the table says; --fix writes a cleaned copy")
            if wrong
            else None
        )
        return Result(tables=[table], data=content, failure=failure)
    written, changes = _fix(context, dataset, Path(options.fix))
    failure = _judge_copy(context, options)
    content["written"] = [str(path) for path in written]
    return Result(
        tables=[table, _count_changes(changes, options.fix)],
        data=content,
        next_step=None if failure else f"plant mig {shlex.quote(options.fix)}",
        failure=failure,
    )


def _choose_wrong(findings: Iterable[Finding], *, warnings: bool) -> list[Finding]:
    """The findings that make the command fail."""
    return [
        finding
        for finding in findings
        if finding.level == "fatal" or (warnings and finding.level == "warning")
    ]


def _judge_copy(context: StageContext, options: CheckOptions) -> DataError | None:
    """The error if something is still wrong with the cleaned copy."""
    path = str(options.fix)
    try:
        copy = load_dataset(context, DataSection(path=path))
        left = _choose_wrong(
            _examine(context, copy, *digest_and_sign(copy, context.reporter), None),
            warnings=options.fail_on_warning,
        )
    except DataError as error:  # nothing is left of it
        return error
    return (
        _fail(
            len(left),
            path,
            f"put right by hand what the copy still has: {'; '.join(map(str, left))}",
        )
        if left
        else None
    )


def _count_changes(changes: pl.DataFrame, path: str) -> Table:
    """How often each kind of change was made."""
    kind = (
        pl.col("change")
        .str.replace(r"^was called .*", "got an id of its own")
        .str.replace(r" repeats .*, which", " repeats one that")
    )
    kind = kind.str.replace(r"(?s) a span of evidence of .*", " a span of evidence")
    counted = changes.group_by(kind, maintain_order=True).len()
    columns = [Column(name="what was put right"), Column(name="count", kind="count")]
    return Table(
        title=f"Changes in {path}",
        columns=columns,
        rows=list(counted.iter_rows()),
        notes=[] if len(counted) else ["nothing"],
    )


def _examine(
    context: StageContext,
    dataset: Dataset,
    digests: dict[SplitName, pl.DataFrame],
    signatures: Signatures,
    chosen: Choice | None,
) -> Iterator[Finding]:
    findings = examine_documents(
        digests, (*THOROUGH, find_near_labels, find_odd_label_counts, find_cut_off)
    )
    yield from findings
    yield from find_near_duplicates(dataset, digests, context.reporter, signatures)
    yield from find_unseen_labels(digests, read_titles(dataset, context.reporter))
    yield from find_unknown_labels(dataset, digests)
    if not any(
        finding.level == "fatal" for finding in findings
    ):  # evidence is matched by ids, which must be sound
        yield from read_evidence(dataset, {name: tidy(frame) for name, frame in digests.items()})[1]
    texts = {name: SplitTexts(dataset, name, frame.height) for name, frame in digests.items()}
    labels = digests["train"]["labels"].explode().drop_nulls()
    yield from find_effort(
        texts["train"], len(labels) / max(1, digests["train"].height), labels.n_unique()
    )
    if chosen is None:
        yield from find_languages(texts, None)
        return
    spec, settings = context.component(BackboneSpec, chosen)
    yield from find_languages(texts, spec, context.components(BackboneSpec))
    yield from find_cut_texts(texts, spec.load(settings, MachineSection(device="cpu")), spec.name)


def _fix(context: StageContext, dataset: Dataset, output: Path) -> tuple[list[Path], pl.DataFrame]:
    """Write the cleaned copy and the list of changes; all of the corpus is in memory."""
    frames = read_frames(dataset)
    parts, changes = repair(frames)
    if dataset.evidence is not None:
        spans, gone = repair_evidence(collect_evidence(dataset.evidence), frames, parts)
        dataset, changes = replace(dataset, evidence=spans.lazy()), pl.concat([changes, gone])
    written = write_corpus(parts, dataset, output, force=context.force)
    listed = output.with_name(f"{output.name}.changes.tsv")
    write_table(guard_cells(changes), listed)
    for path in (*written, listed):
        context.reporter.note(f"wrote {path}")
    context.reporter.note(f"{changes.height:,} changes, listed in {listed}")
    return [*written, listed], changes


def _fail(count: int, where: str, todo: str) -> DataError:
    return DataError(
        f"{count} checks found something wrong",
        where=where,
        expected="a corpus that passes all of them",
        todo=todo,
    )
