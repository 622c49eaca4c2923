"""The corpus of a run: prepared by the first stage, opened and compared with its record by all
later ones.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from plant_cli.api import ArtefactError, Choice, DataSection, Dataset, UsageError
from plant_cli.data.blocks import checking
from plant_cli.data.corpus_files import (
    KEPT_FOR_MODELS,
    LABELS_FILE,
    NEW_RUN,
    SPLITS_FILE,
    CorpusRecord,
)
from plant_cli.data.files import hash_file, hash_strings, remove, remove_temporaries
from plant_cli.data.growth import EarlierReading
from plant_cli.data.loading import ANY, COLUMNS, find_other_columns, load_dataset, naming_reader
from plant_cli.data.prepare import prepare
from plant_cli.data.store import StoredCorpus, open_corpus
from plant_cli.data.word_analysis import find_other_packages
from plant_cli.runs.changes import stage_key
from plant_cli.runs.folder import CACHE, HEADER_NAME, READER, Run, StageFolder
from plant_cli.runs.recipes import read_run_recipe
from plant_cli.runs.session import stopped

if TYPE_CHECKING:
    from plant_cli.runs.stage_context import RunContext


def open_run_corpus(context: RunContext, run: Run, *, writes: bool) -> StoredCorpus:
    """The corpus of a run; only a stage, which writes, may prepare it."""
    if run.header.data_hash is None:
        if not writes:
            raise ArtefactError(
                f"the run '{run.path}' has no corpus yet",
                expected="a run in which a stage has read its corpus",
                todo="start with `plant mig DATA`",
            )
        return _prepare(context, run)
    if context.data == DataSection() and not run.recipe_path.exists():
        raise _lost_recipe(run)
    corpus = open_corpus(find_corpus(run), partial(_load_again, context, run))
    of_growth = () if writes or not (run.path / FORMER).is_dir() else MAY_CHANGE
    _refuse_other_options(context.data, corpus, run, may_differ=of_growth)
    _warn_of_changes(context, corpus, run)
    for what, file, recorded, now in (
        ("documents", SPLITS_FILE, run.header.data_hash, corpus.data_hash),
        ("label order", LABELS_FILE, run.header.label_hash, corpus.labels.hash),
    ):
        if recorded != now:
            raise ArtefactError(
                f"the {what} of the corpus in this run are not those that its stages were run on",
                where=f"{run.path / HEADER_NAME} ({str(recorded)[:12]}…) against "
                f"{run.corpus_path / file} ({now[:12]}…)",
                expected="one hash in both",
                todo=f"put {run.corpus_path} back as it was, or start another run with --run DIR",
            )
    return corpus


def _lost_recipe(run: Run) -> ArtefactError:
    """The error for a run that does not say where its corpus is."""
    lost = any(folder.is_done() for folder in run.stages())
    return ArtefactError(
        "the run has lost its recipe, which names its corpus"
        if lost
        else "no corpus was named, and no stage of this run has finished, whose recipe would "
        "name it",
        where=str(run.recipe_path),
        expected="the file as `plant` wrote it"
        if lost
        else "the corpus, until the first stage has finished",
        todo=("restore it, or name the corpus again, " if lost else "name the corpus again, ")
        + "as at the beginning of the run, or with --set data.path=PATH (see `source` in "
        f"{run.corpus_path / SPLITS_FILE})",
    )


def _warn_of_changes(context: RunContext, corpus: StoredCorpus, run: Run) -> None:
    """Say which packages and tables of titles are not those that the run was begun with."""
    if changed := find_other_packages(corpus.record.analyser):
        context.reporter.warn(
            f"words of this run were counted with {', '.join(changed)}: some may be reduced "
            "otherwise than when relevance was counted"
        )
    for path in map(Path, filter(None, (context.data.vocabulary, context.data.titles))):
        recorded = run.header.sources.get(str(path.absolute()))
        if recorded is not None and path.is_file() and hash_file(path) != recorded:
            context.reporter.warn(
                f"{path} has changed since this run was begun, which keeps its titles: another "
                "run (--run DIR) takes the new ones"
            )


def find_run_columns(context: RunContext, run: Run) -> dict[str, str | None]:
    """Columns of the run where the section `data` of a step leaves them open: those that its corpus
    was read with, else those that reading it would find.
    """
    if run.header.data_hash is None:
        return {**find_other_columns(context, context.data)}
    source, usual = CorpusRecord.read(find_corpus(run)).source, DataSection()
    return {
        name: source[name]
        for name in COLUMNS
        if name in source and getattr(context.data, name) == getattr(usual, name)
    }


def find_own_corpus(run: Run, made: StageFolder) -> Path:
    """Where the corpus is that a finished stage was made on. If the run's has grown since, what
    models need is kept of it: labels, the way to find words and statistics.
    """
    stage, present = made.finished(), find_corpus(run)
    if stage is None or not (run.path / FORMER).is_dir():
        return present
    edits = stage.sections.get("data", {}).get("label_edits")
    for place in (present, *sorted((run.path / FORMER).iterdir())):
        record = CorpusRecord.read(place)
        known = stage.key == stage_key(stage, record.data_hash)
        if known and record.source.get("label_edits") == edits:
            return place
    return present


def open_own_corpus(context: RunContext, run: Run, made: StageFolder) -> StoredCorpus | None:
    """The corpus that a finished stage was made on, without documents, if the run's has grown
    since; else None.
    """
    folder = find_own_corpus(run, made)
    if folder == find_corpus(run):
        return None
    return open_corpus(folder, partial(_load_again, context, run))


def find_corpus(run: Run) -> Path:
    """Where the corpus is that the header of the run names: a growth that was killed leaves it
    among the former ones.
    """
    kept, here = _place_former(run), run.corpus_path
    if not kept.exists():
        return here
    record = CorpusRecord.read(here) if here.exists() else None
    known = (run.header.data_hash, run.header.label_hash)
    return here if record and (record.data_hash, record.label_hash) == known else kept


def _place_former(run: Run) -> Path:
    """Where the corpus that the header names is kept once it has grown."""
    return run.path / FORMER / f"{run.header.data_hash}-{run.header.label_hash}"


def _load_again(context: RunContext, run: Run) -> Dataset:
    """The corpus of the run, from where it was; `ArtefactError` where it is no longer there."""
    data = _follow_growth(context.data, run)
    path, edits = data.path, data.label_edits
    if (
        edits is not None
        and not Path(edits).exists()
        and (beside_it := run.path / Path(edits).name).exists()
    ):  # the run has moved
        return load_dataset(
            context, data.model_copy(update={"label_edits": str(beside_it)}), again=True
        )
    if (
        path is None
        or Path(path).exists()
        or path != CorpusRecord.read(find_corpus(run)).source.get("path")
    ):
        return load_dataset(context, data, again=True)
    beside = [
        place / Path(path).name
        for place in (Path.cwd(), run.path.absolute().parent)
        if (place / Path(path).name).exists()
    ]
    place = shlex.quote(str(beside[0])) if beside else "NEW_PLACE"
    raise ArtefactError(
        "the corpus that this run was made from is no longer where it was",
        where=path,
        expected="the same documents there, or in another "
        f"place{f', perhaps {beside[0]}' if beside else ''}",
        todo=f"name its new place: repeat the command with {place}, or with --set "
        f"data.path={place}",
    )


def _follow_growth(data: DataSection, run: Run) -> DataSection:
    """The section with what a growth has changed, where it is that of the run's recipe: the recipe
    is older until a stage has finished on the grown corpus.
    """
    if not (run.path / FORMER).is_dir():
        return data
    source, recipe = (
        CorpusRecord.read(find_corpus(run)).source,
        read_run_recipe(run.path).values.get("data", {}),
    )
    return data.model_copy(
        update={
            key: source[key]
            for key in ("path", *MAY_CHANGE)
            if key in source and getattr(data, key) == recipe.get(key)
        }
    )


def _prepare(context: RunContext, run: Run) -> StoredCorpus:
    if context.data == DataSection() and not any(folder.is_done() for folder in run.stages()):
        raise UsageError(
            f"there is no run in '{run.path}', and no corpus was named to start one with",
            where=str(run.path.absolute()),
            expected="the folder of a run, or a corpus: a table, or a folder of train, validation "
            "and test tables",
            todo="name the folder of your run with --run DIR, or start one with `plant mig "
            "CORPUS`, such as `plant mig data.parquet`",
        )
    remove_temporaries(run.corpus_path)
    with checking(partial(_stop, context)):
        dataset = load_dataset(context, context.data)
        with naming_reader(dataset):
            corpus = prepare(
                dataset,
                context.data,
                run.corpus_path,
                context.reporter,
                show=context.request.show_documents,
            )
    run.bind(data_hash=corpus.data_hash, label_hash=corpus.labels.hash, sources=hash_files(dataset))
    return corpus


MAY_CHANGE = (
    "text_column",
    "labels_column",
    "id_column",
    "split_column",
    "label_separator",
    "encoding",
    "label_edits",
)
"""Options that say how a table is read and how labels are called, not what is taken of it: a later
export may have other names.
"""
NEXT_CORPUS = ".corpus.next"
FORMER = ".former"  # corpora that the run had before it grew, by hash, for models made on them


def _reads_same_files(data: DataSection, sources: Mapping[str, str]) -> bool:
    """Whether a corpus would be read from files of these hashes, and no others."""
    named = [data.path, *filter(None, [data.label_edits])]
    known = all(
        path is not None and Path(path).is_file() and str(Path(path).absolute()) in sources
        for path in named
    )
    return known and all(
        Path(path).is_file() and hash_file(Path(path)) == hashed for path, hashed in sources.items()
    )


def grow_corpus(context: RunContext, run: Run) -> StoredCorpus | None:
    """Prepare the corpus of a run again if its source has changed; None if it has not.

    Stages of the earlier corpus are out of date then. One that was not finished is put aside, since
    it cannot go on.

    Raises:
        UsageError: the corpus was not read from files.
        ArtefactError: it is read in another way than before.
        DataError: most of its documents are gone.
    """
    coming = run.path / NEXT_CORPUS
    if (found := find_corpus(run)) != run.corpus_path:
        remove(run.corpus_path)  # the process was killed before the new corpus counted
        found.rename(run.corpus_path)
    for former in (run.path / FORMER).glob("*"):
        _keep_for_models(former)
    remove(coming)
    if run.header.data_hash is None or _reads_same_files(context.data, run.header.sources):
        return None
    if context.data.path is None:
        raise UsageError(
            "the corpus of this run was made, not read from files: it cannot grow",
            where=f"--continue, {run.corpus_path / SPLITS_FILE}",
            expected="a run whose corpus is a table or a folder",
            todo="leave --continue out, or start another run with --run DIR",
        )
    _refuse_other_options(
        context.data,
        open_corpus(run.corpus_path, partial(_load_again, context, run)),
        run,
        may_differ=MAY_CHANGE,
    )
    dataset = load_dataset(context, context.data)
    sources = hash_files(dataset)
    if sorted(sources.values()) == sorted(run.header.sources.values()):
        return None
    with checking(partial(_stop, context)), naming_reader(dataset):
        grown = prepare(
            dataset, context.data, coming, context.reporter, EarlierReading.of(run.corpus_path)
        )
    for folder in [folder for folder in run.stages() if not folder.is_done()]:
        folder.put_aside()
        context.reporter.note(
            f"'{folder.name}' was not finished on the earlier corpus: it is kept in "
            f"'{folder.failed_path}'"
        )
    former = _place_former(run)
    former.parent.mkdir(exist_ok=True)
    remove(former)
    run.corpus_path.rename(former)
    coming.rename(run.corpus_path)
    run.bind(data_hash=grown.data_hash, label_hash=grown.labels.hash, sources=sources)
    _keep_for_models(former)
    _drop_spent(run.path / CACHE)
    return replace(grown, folder=run.corpus_path)


def _keep_for_models(corpus: Path) -> None:
    """Remove what a model does not need: documents and gold labels; also what a killed process has
    left of them.
    """
    record = CorpusRecord.read(corpus)
    outputs = {name: known for name, known in record.outputs.items() if name in KEPT_FOR_MODELS}
    if outputs != record.outputs:
        record.model_copy(update={"outputs": outputs}).write(corpus)
    for path in corpus.iterdir():
        if path.name not in (*outputs, SPLITS_FILE):
            remove(path)


def read_former_labels(run: Path, label_hash: str) -> list[str] | None:
    """The labels of a run by the hash of their order, which the corpus may have had before it
    grew; None if nobody knows them.
    """
    for path in (run / "corpus" / LABELS_FILE, *run.glob(f"{FORMER}/*/{LABELS_FILE}")):
        found = (
            pl.read_parquet(path.absolute(), columns=["label"], glob=False)["label"].to_list()
            if path.exists()
            else []
        )
        if hash_strings(found) == label_hash:
            return found
    return None


def _drop_spent(cache: Path) -> None:
    """Remove words and hidden states of all but the newest corpus, from which those of
    documents that are still there are taken.
    """
    newest: dict[tuple[str, str], Path] = {}
    if cache.is_symlink():  # other runs may need them
        return
    for mark in sorted(cache.glob(f"*/{READER}"), key=lambda path: path.stat().st_mtime):
        kind = (mark.parent.name.rpartition("-")[0], mark.read_text())
        if kind in newest:
            remove(newest[kind])
        newest[kind] = mark.parent


def hash_files(dataset: Dataset) -> dict[str, str]:
    """SHA-256 of each file that a dataset was read from, by absolute path."""
    return {
        str(path.absolute()): hash_file(path) for path in map(Path, dataset.files) if path.is_file()
    }


def _stop(context: RunContext) -> None:
    if context.stopping:
        raise stopped("while the corpus was read", str(context.folder), "the whole corpus read")


def _refuse_other_options(
    data: DataSection, corpus: StoredCorpus, run: Run, may_differ: Collection[str] = ()
) -> None:
    now = data.model_dump(mode="json")
    for key, before in corpus.record.source.items():
        if key in ("path", "dataset", "rejects", *may_differ) or now.get(key) == before:
            continue
        if (
            key in ("vocabulary", "titles", "evidence", "label_edits")
            and now.get(key) is not None
            and _is_source(now[key], run)
        ):
            continue
        again = (
            "leave the option out"
            if before is None
            else f"give it again: --set data.{key}={shlex.quote(json.dumps(before))}"
        )
        raise ArtefactError(
            f"the corpus of this run was prepared with {key} = {before!r}, not {now.get(key)!r}",
            where=f"{corpus.folder}, data.{key}",
            expected="the same options of the section `data` in every stage of a run",
            todo=f"{again}, or start another run with --run DIR",
        )


def find_own_share(data: DataSection, run: Run) -> tuple[DataSection, float]:
    """The section `data` of the run's corpus, for a stage that asks for fewer training
    documents, and the share of them that it takes.
    """
    record = CorpusRecord.read(run.corpus_path)
    share = record.find_part(data.train_share)
    return data if share == 1 else data.model_copy(
        update={"train_share": record.source.get("train_share", 1.0)}
    ), share


def _is_source(path: str, run: Run) -> bool:
    """Whether the run's corpus was made of this file, which may have been in another place then."""
    return Path(path).is_file() and hash_file(Path(path)) in run.header.sources.values()


def refuse_other_corpus(context: RunContext, run: Run) -> None:
    """Refuse a named corpus that is not that of the run, before any message about stages; a known
    path is not read.

    A corpus that moved is recognised by the hashes of its files, one in another format by those of
    its documents.
    """
    named = context.data.path
    if named is None or run.header.data_hash is None:
        return
    source = CorpusRecord.read(run.corpus_path).source
    before = source.get("path")
    if named == before:
        return
    if before is None and not run.header.sources:  # else the model was passed on without its corpus
        dataset = source.get("dataset") or {}
        if not Path(named).exists():
            load_dataset(
                context, context.data.model_copy(update={"dataset": Choice(name=ANY)})
            )  # explains what is missing
        what, todo = (
            f"this run belongs to another corpus, made by '{dataset.get('name')}', and not to "
            f"'{named}'",
            NEW_RUN,
        )
        raise ArtefactError(
            what,
            where=str(run.corpus_path / SPLITS_FILE),
            expected="a separate run folder for each corpus",
            todo=todo,
        )
    corpus = context.open_corpus()
    if all(_is_source(str(file), run) for file in corpus.dataset.files):
        return
    for split in corpus.record.splits:
        for _ in corpus.stream(split):
            pass
