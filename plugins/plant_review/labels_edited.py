"""`plant labels`: a new edition of a vocabulary compared with the labels of a model, and a
model with the labels of now.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant_cli.api import (
    ArtefactError,
    Column,
    DataError,
    DataSection,
    Interrupted,
    Purpose,
    Request,
    Result,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.data.changed_labels import (
    EDIT_COLUMNS,
    EDIT_KINDS,
    ChangedLabels,
    make_edits,
    read_edit_rows,
)
from plant_cli.data.corpus_files import CorpusRecord, read_labels
from plant_cli.data.documents import find_used_labels
from plant_cli.data.files import refuse_replacing, remove, require_free
from plant_cli.data.listed_values import split_names
from plant_cli.data.loading import load_dataset
from plant_cli.data.printed_tables import show_count
from plant_cli.data.tables import collect, guard_cells, output_format, scan_table, write_table
from plant_cli.data.vocabularies import find_ids, read_respelled, read_titles
from plant_cli.runs.folder import CACHE, HEADER_NAME, RUN_RECIPE, Run, StageFolder
from plant_cli.runs.lock import hold_lock
from plant_cli.scoring.models import has_network
from plant_cli.training.training_options import FinetuneOptions
from plant_review import LabelsApplyOptions, LabelsDiffOptions

OF_EACH_KIND = 10  # edits of a kind in the table
FEWEST_FOUND = 0.5  # share of the labels in the new vocabulary below which it may be another one
KEPT_EDITS = "label-edits.csv"
PLANTED = "pretrain-attn"  # of a network that is trained again
REMADE = (
    "mig",
    PLANTED,
    "finetune",
    "predict",
    "eval",
)  # stages that the new run has anew, where the other one has them
Row = dict[str, str | None]


def diff(context: StageContext, options: LabelsDiffOptions) -> Result:
    """Compare a vocabulary with the labels of a run, and write the edits that lead to it."""
    output = Path(options.output)
    refuse_replacing(options.output, options.vocabulary, options.mapping, options.old)
    require_free(output, force=context.force)
    output_format(output)
    run = Run.open(Path(options.path))
    labels = read_labels(run.corpus_path)
    record = CorpusRecord.read(run.corpus_path)
    language = options.language or record.source.get("vocabulary_language")
    purpose = Purpose(language, labels["label"], spoken=lambda: record.analyser.shares)
    ids = None if options.old is None else find_ids(Path(options.old), purpose)
    new, remarks = read_respelled(Path(options.vocabulary), purpose, ids=ids)
    named = _find_names(labels, new)
    new = new.with_columns(
        pl.col("label").replace(named),
        pl.col("replaced_by").list.eval(pl.element().replace(named)),
    )
    for remark in remarks:
        context.reporter.note(remark)
    found = labels.join(new, on="label", how="semi").height
    if found < FEWEST_FOUND * labels.height:
        context.reporter.warn(
            f"only {found:,} of the {labels.height:,} labels of the run are in "
            f"{options.vocabulary}: is it the right one?"
        )
    mapping = _read_mapping(options.mapping)
    if ids is None:
        context.reporter.note(
            "labels that the run does not have count as added; --old names the earlier edition, "
            "whose labels are not new"
        )
    known = {**(ids or {}), **named}
    mapping = {
        known.get(label, label): [known.get(one, one) for one in found]
        for label, found in mapping.items()
    }
    rows = list(_find_edits(labels, new, mapping, None if ids is None else {*ids.values()}))
    write_table(
        guard_cells(pl.DataFrame(rows, schema=dict.fromkeys(EDIT_COLUMNS, pl.String))), output
    )
    counts = dict(zip(labels["label"], labels["train_count"], strict=True))
    titles = {row["label"]: row["title"] for row in labels.iter_rows(named=True)}
    table = _tabulate(rows, f"Edits, in {output}", counts, titles)
    edits = dict(Counter(str(row["edit"]) for row in rows))
    command = (
        f"plant labels apply {shlex.quote(options.path)} {shlex.quote(options.output)} --run NEW"
    )
    return Result(
        tables=[table],
        data={"edits": rows, "written": str(output)},
        summary=edits,
        next_step=f"look at it, then {command}",
    )


def _find_names(labels: pl.DataFrame, new: pl.DataFrame) -> dict[str, str]:
    """The labels of new ids of an edition: their titles, where most labels of the run are titles.
    Else they are the ids.
    """
    titled = labels.filter(pl.col("title").is_not_null())
    if 2 * titled.filter(pl.col("label") == pl.col("title")).height <= titled.height:
        return {}
    free = new.filter(
        ~pl.col("label").is_in(labels["label"].implode())
        & ~pl.col("title").is_in(labels["label"].implode())
        & pl.col("title").is_unique()
        & ~pl.col("deprecated")
    )
    return dict(free.select("label", "title").iter_rows())


def _read_mapping(path: str | None) -> dict[str, list[str]]:
    """What replaces each label, by a table of two columns, old and new; with `old` and `new`
    among more, these.
    """
    if path is None:
        return {}
    table = collect(scan_table(Path(path)), path)
    names = ["old", "new"] if {"old", "new"} <= {*table.columns} else table.columns
    if len(names) != 2:
        expected, todo = "two columns, old and new", "name the columns old and new"
        raise DataError(
            f"the mapping has {len(names)} columns",
            where=f"{path}: {', '.join(names)}",
            expected=expected,
            todo=todo,
        )
    pairs = (
        table.select(pl.col(names).cast(pl.String).str.strip_chars())
        .drop_nulls()
        .unique(maintain_order=True)
    )
    mapping: dict[str, list[str]] = {}
    for old, successor in pairs.iter_rows():
        if old != successor:
            mapping.setdefault(old, []).append(successor)
    return mapping


def _find_edits(
    labels: pl.DataFrame,
    new: pl.DataFrame,
    mapping: Mapping[str, Sequence[str]],
    earlier: Collection[str] | None,
) -> Iterator[Row]:
    """The edits from the labels of a run to a vocabulary: additions first, since others may
    need them.

    Labels of the `earlier` edition (None: unknown) are not new, and nothing else is retired: free
    keywords that no edition has stay as they are.
    """
    current = {row["label"]: row for row in new.filter(~pl.col("deprecated")).iter_rows(named=True)}
    replaced = {
        **dict(new.filter(pl.col("deprecated")).select("label", "replaced_by").iter_rows()),
        **mapping,
    }
    old = dict(labels.select("label", "title").iter_rows())
    successors = {
        label: [label] * (label in current) + _follow(label, replaced, current)
        for label in old
        if label not in current or label in mapping
    }
    needed = {one for found in successors.values() for one in found}
    fresh = {label for label, row in current.items() if row["title"]} - {*(earlier or ())}
    yield from _list_added(current, (fresh | needed) - old.keys())
    yield from _find_renamed(current, old)
    for label, found in successors.items():
        kind = ("retire", "merge", "split")[min(len(found), 2)]
        if found != [label] and (found or earlier is None or label in earlier):
            yield _edit(kind, label, title=old[label], into=_join(found))


def _list_added(current: Mapping[str, Row], added: Collection[str]) -> Iterator[Row]:
    """Labels that the run does not have, in the order of the vocabulary."""
    for label, row in current.items():
        if label in added:
            yield _edit("add", label, title=row["title"], description=row["description"])


def _find_renamed(current: Mapping[str, Row], old: Mapping[str, str | None]) -> Iterator[Row]:
    """Labels whose title is another one now, or that had none."""
    for label, title in old.items():
        renamed = current[label]["title"] if label in current else None
        if renamed and renamed != (title or label):
            yield _edit("rename" if title else "title", label, title=renamed)


def _follow(
    label: str, replaced: Mapping[str, Sequence[str]], current: Mapping[str, object]
) -> list[str]:
    """The labels of now that replace a label, over those that were replaced in turn; a circle
    leads nowhere.
    """
    waiting, seen, found = list(replaced.get(label, ())), {label}, list[str]()
    while waiting:
        one = waiting.pop(0)
        if one in current and one not in found:
            found.append(one)
        elif one not in seen:
            seen.add(one)
            waiting += replaced.get(one, ())
    return found


def _join(labels: Sequence[str]) -> str | None:
    """Labels in one cell, as `split_names` reads them."""
    joined = "|".join(labels)
    return (joined if split_names(joined) == labels else json.dumps(labels)) or None


def _edit(kind: str, label: str, **cells: str | None) -> Row:
    return {**dict.fromkeys(EDIT_COLUMNS), "edit": kind, "label": label, **cells}


def _tabulate(
    rows: Sequence[Row], title: str, counts: Mapping[str, int], titles: Mapping[str, str | None]
) -> Table:
    """The edits of each kind that concern most documents, and how many there are."""
    of_kind = Counter(row["edit"] for row in rows)
    heaviest = sorted(rows, key=lambda row: -counts.get(str(row["label"]), 0))
    shown = [
        row
        for kind in EDIT_KINDS
        for row in [row for row in heaviest if row["edit"] == kind][:OF_EACH_KIND]
    ]
    cells = [
        [
            row["edit"],
            row["label"],
            titles.get(str(row["label"])),
            row["title"] if row["edit"] in ("add", "title", "rename") else row["into"],
            counts.get(str(row["label"]), 0),
        ]
        for row in shown
    ]
    columns = [
        *(Column(name=name) for name in ("edit", "label", "title", "becomes")),
        Column(name="training documents", kind="count"),
    ]
    notes = [
        ", ".join(f"{kind}: {of_kind[kind]:,}" for kind in EDIT_KINDS if of_kind[kind])
        or "nothing changes"
    ]
    if len(shown) < len(rows):
        notes.append(f"the {OF_EACH_KIND} of each kind with most training documents are shown")
    notes += _tell_taken(rows, titles)
    return Table(title=title, columns=columns, rows=cells, notes=notes)


def _tell_taken(rows: Sequence[Row], titles: Mapping[str, str | None]) -> list[str]:
    """A line on labels that take a title which another one had, if there are any."""
    before = {name: label for label, name in titles.items()}
    taken = [
        (row["label"], before[row["title"]])
        for row in rows
        if row["edit"] == "rename" and row["title"] in before
    ]
    return [
        f"{len(taken):,} labels take a title that another one had, such as '{label}' "
        f"that of '{other}'"
        for label, other in taken[:1]
    ]


def apply(context: StageContext, options: LabelsApplyOptions) -> Result:
    """Make a run with edited labels of a copy of another one, and go on from its model."""
    source, target = Run.open(Path(options.path)), context.run_path
    if target.exists() and target.resolve() == source.path.resolve():
        raise UsageError(
            "the edited run would take the place of the other",
            where=f"--run {target}",
            expected="a new folder",
            todo="name one: --run NEW",
        )
    rows = read_edit_rows(Path(options.edits))
    if not options.train:
        _require_tables(source)
    edits = _check(context, source, rows, options.edits)
    file, kept = target / KEPT_EDITS, [name for name in REMADE if options.train or name != PLANTED]
    if target.exists() and any(target.iterdir()):
        _require_same_edits(source, target, rows)
    else:
        _copy(source, target, rows, kept)
    flags = {
        **{name: given for name, given in context.request.flags.items() if name == "machine"},
        "data": {"label_edits": str(file.absolute())},
        "finetune": {"only_new": not options.train},
    }
    request = replace(context.request, resume=True, grow=True, force=True, recipe=None, flags=flags)
    stages = [name for name in kept if StageFolder(target / name).last_record() is not None]
    results = _run_stages(context, request, stages)
    counts = dict(edits.counts)
    if split := counts.get("split"):
        said = (
            "their documents have the first of the new labels until somebody reviews them "
            "(`plant review export`)"
        )
        context.reporter.warn(f"{show_count(split, 'split label')}: {said}")
    table = Table(
        title=f"Labels of {target}",
        columns=[Column(name=kind, kind="count") for kind in counts],
        rows=[[*counts.values()]],
        notes=[f"made anew: {', '.join(stages)}; {source.path} is as it was"],
    )
    return Result(
        tables=[table, *results["finetune"].tables],
        data=counts,
        summary=counts,
        next_step=f"plant suggest --run {shlex.quote(str(target))} --text '…'",
    )


def _require_same_edits(source: Run, target: Path, rows: Sequence[Row]) -> None:
    """Refuse a folder that is not what the same command left."""
    file = target / KEPT_EDITS
    if not file.exists() or read_edit_rows(file) != _all_rows(source, rows):
        raise UsageError(
            f"'{target}' exists already, and is no run with these edits",
            where=str(target.absolute()),
            expected="a new folder, or one in which the same command was stopped",
            todo="name another one: --run NEW",
        )


def _run_stages(
    context: StageContext, request: Request, stages: Sequence[str]
) -> dict[str, Result]:
    try:
        return {name: context.runner.run_stage(request, name) for name in stages}
    except Interrupted as error:
        again = "the same command goes on where it stopped"
        raise Interrupted(
            error.what, where=error.where, expected="all stages of the new run", todo=again
        ) from error


def _check(context: StageContext, source: Run, rows: Sequence[Row], where: str) -> ChangedLabels:
    """The edits, if they fit the labels of the run's corpus."""
    if not (source.path / "finetune").is_dir():
        raise ArtefactError(
            f"the run '{source.path}' has no model",
            where=str(source.path.absolute()),
            expected="a trained run",
            todo=f"plant train --run {source.path}",
        )
    dataset = load_dataset(context, _find_source(source), again=True)
    index = set(
        read_labels(source.corpus_path)["label"]
    )  # a label of a title alone, or of validation alone, can be added
    others = {*find_used_labels(dataset), *read_titles(dataset, context.reporter)["label"]} - {
        row["label"] for row in rows if row["edit"] == "add"
    }
    edits = make_edits(rows, where, index | others)
    if not edits.counts:
        raise DataError(
            "there are no edits",
            where=where,
            expected="a row for each edit",
            todo="add a row; without edits the model stays",
        )
    return edits


def _require_tables(source: Run) -> None:
    """Refuse a network whose label tables did not start from prototypes: rows of new labels are
    computed in their space.
    """
    record = source.stage("finetune", None).finished()
    if (
        record is None
        or not has_network(source.path / "finetune")
        or FinetuneOptions(**record.options).plants_tables
    ):
        return
    raise UsageError(
        "the label tables of the network did not start from prototypes, so that a new label has "
        "no row without training",
        where=str(source.path / "finetune"),
        expected="a network trained with --head prototypes, which --init planted has by default",
        todo="train it on for the new labels: plant labels apply --train",
    )


def _find_source(run: Run) -> DataSection:
    """Where the corpus of a run is; edits that the run keeps are there also after it was moved."""
    data = DataSection.model_validate(CorpusRecord.read(run.corpus_path).source)
    moved = data.label_edits is not None and not Path(data.label_edits).exists()
    return data.model_copy(update={"label_edits": str(run.path / KEPT_EDITS)}) if moved else data


def _all_rows(source: Run, rows: Sequence[Row]) -> list[Row]:
    """The edits with those that the run has already, which come first."""
    before = _find_source(source).label_edits
    return [*([] if before is None else read_edit_rows(Path(before))), *rows]


def _copy(source: Run, target: Path, rows: Sequence[Row], stages: Sequence[str]) -> None:
    """A copy of what the new run goes on from, some stages among it."""
    with hold_lock(source.path, "labels apply"):
        partial = target.with_name(f".{target.name}.partial")
        remove(partial)
        partial.mkdir(parents=True)
        for name in ("corpus", CACHE, *stages):
            if (source.path / name).is_dir():
                shutil.copytree(
                    source.path / name, partial / name, ignore=shutil.ignore_patterns(".*")
                )
        for name in (HEADER_NAME, RUN_RECIPE):
            shutil.copyfile(source.path / name, partial / name)
        write_table(
            guard_cells(
                pl.DataFrame(_all_rows(source, rows), schema=dict.fromkeys(EDIT_COLUMNS, pl.String))
            ),
            partial / KEPT_EDITS,
        )
    with suppress(FileNotFoundError):
        target.rmdir()
    partial.rename(target)
