"""From the section `data` to a dataset: the plugin that it names, or the one that recognises
what lies at its path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from plant_cli.api import (
    Choice,
    DataError,
    DataSection,
    Dataset,
    DatasetSpec,
    PlantError,
    PluginError,
    Reporter,
    SilentReporter,
    StageContext,
    Task,
    UsageError,
    first_line,
)
from plant_cli.api.promises import DATASET
from plant_cli.data.changed_labels import read_label_edits
from plant_cli.data.corpus_files import SPLITS_FILE, CorpusRecord
from plant_cli.data.joined_rows import join_rows
from plant_cli.data.lines import Signature, sign_file, watching
from plant_cli.data.splits import take_subset
from plant_cli.data.vocabularies import apply_vocabulary, resolve_titles

ANY = "files"  # the dataset that reads tables, and stands for whichever format is recognised


def load_dataset(
    context: StageContext,
    data: DataSection,
    tell: Callable[[str], None] | None = None,
    *,
    again: bool = False,
) -> Dataset:
    """The dataset of a section `data`; notes say what was recognised, unless it is read `again`.

    Where nothing is named, the corpus is that of the run that the variable PLANT_RUN names.
    """
    run = os.environ.get("PLANT_RUN")
    if run and data == DataSection() and (Path(run) / "corpus" / SPLITS_FILE).exists():
        data = DataSection.model_validate(CorpusRecord.read(Path(run) / "corpus").source)
        context.reporter.note(
            f"the corpus is that of the run {run}: {data.path or data.dataset.name}"
        )
    note = (lambda _: None) if again else context.reporter.note
    if again and (kept := _find_last(data)) is not None:
        return kept
    asked = data
    chosen, fits = (
        (data.dataset, True)
        if data.dataset.name != ANY
        else _recognise(context, data, note, context.reporter.warn)
    )
    spec, options = context.component(DatasetSpec, chosen)
    _require_answers(spec, data)
    if not fits and data.path is not None:
        data = data.model_copy(update=_find_columns(spec, data, note))
    with _show_spooling(context.reporter, str(data.path or chosen.name)):
        try:
            dataset = spec.load(data.model_copy(update={"dataset": chosen}), options)
        except FileNotFoundError as error:
            if data.path is None or Path(data.path).exists():
                raise
            expected, todo = f"what the dataset '{spec.name}' reads", "correct the path"
            raise DataError(
                f"there is no '{data.path}'",
                where=str(Path(data.path).absolute()),
                expected=expected,
                todo=todo,
            ) from error
    dataset = replace(dataset, reader=_name_stranger(context, spec))
    with naming_reader(dataset):
        dataset = _complete(dataset, data, spec, note, tell)
    _LAST[:] = [(asked, _sign_files(dataset), dataset)]
    return dataset


_LAST: list[tuple[DataSection, list[Signature], Dataset]] = []  # what was loaded last, if anything


def _find_last(data: DataSection) -> Dataset | None:
    """What was loaded last, if the same is asked for and no file has changed: large texts of it
    wait in files.
    """
    found = (
        last
        for known, signed, last in _LAST
        if known == data and signed and signed == _sign_files(last)
    )
    return next(found, None)


def _sign_files(dataset: Dataset) -> list[Signature]:
    try:
        return [sign_file(Path(file)) for file in dataset.files]
    except OSError:  # one is gone
        return []


def _require_answers(spec: DatasetSpec, data: DataSection) -> None:
    """`UsageError` where questions or people are chosen of a format that has none."""
    if data.answer_flags and not spec.answers:
        raise UsageError(
            f"the format '{spec.name}' has no questions and no annotators",
            where=data.answer_flags,
            expected="JSON of an annotation tool, or a table of Label Studio",
            todo="leave it out, or name the right format with --dataset",
        )


def _name_stranger(context: StageContext, spec: DatasetSpec) -> str:
    """The component and its plugin, unless it is one of plant's own."""
    registry = context.request.registry
    owner = registry.owner(DatasetSpec, spec.name)
    if owner is None or owner not in registry.strangers():
        return ""
    return f"the dataset '{spec.name}' of the plugin '{owner.name}'"


@contextmanager
def naming_reader(dataset: Dataset) -> Iterator[None]:
    """Name the stranger's component that gave the dataset in errors that come of reading it."""
    try:
        yield
    except DataError as error:
        if dataset.reader and dataset.reader not in error.where:
            error.where += f"; given by {dataset.reader}"
        raise
    except (
        Exception
    ) as error:  # lazy frames may do anything; what the system refuses is told as such
        refused = isinstance(error, OSError) and error.errno is not None
        if not dataset.reader or refused or isinstance(error, PlantError | MemoryError):
            raise
        raise PluginError(
            f"{dataset.reader} gave what cannot be read: {type(error).__name__}: "
            f"{first_line(error)}",
            where=dataset.reader,
            expected=DATASET.expected,
            todo="choose another dataset, or tell its authors; `plant plugins` says who they are",
        ) from error


def _complete(
    dataset: Dataset,
    data: DataSection,
    spec: DatasetSpec,
    note: Callable[[str], None],
    tell: Callable[[str], None] | None,
) -> Dataset:
    """The dataset with joined rows, a part of it, and the names and changes of labels."""
    if dataset.titled:
        dataset = resolve_titles(dataset, data)
    if spec.card is None:  # who publishes a corpus has said what its documents are
        dataset, joined = join_rows(dataset)
        dataset = replace(dataset, remarks=[*dataset.remarks, *joined])
    dataset, remarks = take_subset(dataset, data)
    if data.evidence is not None and dataset.evidence is None:
        what, todo = (
            f"the format '{spec.name}' does not read evidence",
            "convert the corpus first: plant data convert CORPUS data.parquet",
        )
        raise UsageError(
            what, where=f"--evidence {data.evidence}", expected="a corpus in tables", todo=todo
        )
    for vocabulary in [path for path in (data.titles, data.vocabulary) if path is not None]:
        labels, said = apply_vocabulary(dataset, data.model_copy(update={"vocabulary": vocabulary}))
        dataset = replace(dataset, labels=labels, files=[*dataset.files, vocabulary])
        remarks += said
    if data.label_edits is not None:
        dataset = read_label_edits(Path(data.label_edits)).apply(dataset)
    for remark in remarks:
        note(remark)
    if tell is not None:
        for remark in dataset.remarks:
            tell(remark)
    return dataset


@contextmanager
def _show_spooling(reporter: Reporter, where: str) -> Iterator[None]:
    """Progress of reading, once a corpus turns out to be so large that it waits in files."""
    with ExitStack() as bars:
        tasks: list[Task] = []

        def advance(rows: int) -> None:
            if not tasks:
                tasks.append(
                    bars.enter_context(reporter.progress(f"unpacking {where}", None, "documents"))
                )
            tasks[0].advance(rows)

        with watching(advance):
            yield


def find_formats(
    specs: Sequence[DatasetSpec], data: DataSection, warn: Callable[[str], None] = lambda _: None
) -> dict[str, str]:
    """What each plugin that recognises a corpus says of it; one that reads the very columns that
    the section names stands alone.

    One that fails is passed over: `warn` receives a line about it.
    """
    found: dict[str, str] = {}
    for spec in specs:
        try:
            said = None if spec.recognise is None else spec.recognise(data)
        except MemoryError:
            raise
        except Exception as error:  # whatever a stranger's dataset does
            what = (
                error.what
                if isinstance(error, PluginError)
                else f"`recognise` of the dataset '{spec.name}' failed: {first_line(error)}"
            )
            warn(
                f"{what}: it is passed over (PLANT_PLUGINS=-{spec.plugin or 'NAME'} leaves its "
                "plugin out)"
            )
            continue
        found |= {} if said is None else {spec.name: said}
    return {ANY: found[ANY]} if ANY in found else found


COLUMNS = ("text_column", "labels_column", "id_column", "split_column")
"""Options of the section `data` that a run keeps as they were found."""
_TOLD = {
    "text_column": "text",
    "labels_column": "labels",
    "id_column": "ids",
    "split_column": "splits",
    "titles": "titles of labels",
}


def guess_columns(context: StageContext, data: DataSection) -> dict[str, str]:
    """Options of the section that its dataset guesses, for columns with other names and for titles,
    each told in a note.

    `DataError` if two columns may be meant equally well.
    """
    specs = context.components(DatasetSpec)
    formats = (
        find_formats(specs, data, context.reporter.warn)
        if data.dataset.name == ANY
        else {data.dataset.name: ""}
    )
    reader = next(
        (spec for spec in specs if spec.name in (formats or {ANY: ""}) and spec.guess is not None),
        None,
    )
    return {} if reader is None else _tell(_guess(reader, data), context.reporter.note)


def guess_text(context: StageContext, path: str) -> dict[str, str]:
    """The options `text_column` (several joined by commas) and `id_column` for a table without
    labels that has other names than the usual ones. `ColumnQuestion` if two columns may be meant
    equally well.
    """
    spec, _ = context.component(DatasetSpec, Choice(name=ANY))
    return _guess(spec, DataSection(path=path, labels_column=""))


def find_other_columns(context: StageContext, data: DataSection) -> dict[str, str]:
    """`COLUMNS` that reading a corpus would find under other names than the section says, each
    told in a note; `ColumnQuestion` if two may be meant equally well.
    """
    if data.path is None or data.dataset.name != ANY:
        return {}
    silent = SilentReporter()  # whoever reads the corpus is told
    chosen, fits = _recognise(context, data, silent.note, silent.warn)
    spec, _ = context.component(DatasetSpec, chosen)
    return {} if fits else _find_columns(spec, data, context.reporter.note)


def _find_columns(
    spec: DatasetSpec, data: DataSection, note: Callable[[str], None]
) -> dict[str, str]:
    """`COLUMNS` that a dataset guesses, where those of texts, labels or splits have other names."""
    found = _guess(spec, data)
    kept = {name: found[name] for name in COLUMNS if name in found}
    return {} if kept.keys() <= {"id_column"} else _tell(kept, note)


def _guess(spec: DatasetSpec, data: DataSection) -> dict[str, str]:
    return {} if spec.guess is None else dict(spec.guess(data))


def _tell(found: dict[str, str], note: Callable[[str], None]) -> dict[str, str]:
    """The same options, each told in a note."""
    for option, columns in found.items():
        what = f"column {columns}" if option != "titles" else columns
        what = (
            f"columns {columns.replace(',', ' and ')}, joined"
            if option == "text_column" and "," in columns
            else what
        )
        note(f"{_TOLD.get(option, option)}: {what} (--{option.replace('_', '-')})")
    return found


def _recognise(
    context: StageContext,
    data: DataSection,
    note: Callable[[str], None],
    warn: Callable[[str], None],
) -> tuple[Choice, bool]:
    """The dataset that reads a corpus, and whether one recognised it."""
    found = find_formats(context.components(DatasetSpec), data, warn)
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} formats fit the corpus: "
            f"{'; '.join(f'{name}: {said}' for name, said in found.items())}",
            where=str(data.path),
            expected="one format",
            todo=f"say which: {' or '.join(f'--dataset {name}' for name in found)}",
        )
    if not found or ANY in found:
        return data.dataset, ANY in found
    name, said = next(iter(found.items()))
    note(f"{data.path}: {said} (--dataset {name})")
    return Choice(name=name), True
