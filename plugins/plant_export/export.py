"""`plant export`: write a trained model as a folder that every command takes as a run."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plant_cli import __version__
from plant_cli.api import (
    Column,
    ComponentError,
    Corpus,
    Result,
    StageContext,
    Table,
    UsageError,
)
from plant_cli.api.functions import Named
from plant_cli.data.corpus_files import KEPT_FOR_MODELS, CorpusRecord
from plant_cli.data.files import hash_file, replacing_folder, write_json
from plant_cli.data.records import Facts, StageRecord
from plant_cli.runs.folder import (
    CHECKPOINTS_FOLDER,
    HEADER_NAME,
    VALIDATION_FILE,
    Run,
    StageFolder,
    current_time,
)
from plant_cli.runs.recipes import dump_yaml
from plant_cli.runs.run_corpus import find_own_corpus
from plant_cli.scoring.models import has_network
from plant_cli.scoring.scorer_files import read_scorers
from plant_export import ExportOptions
from plant_export.model_card import write_model_card

if TYPE_CHECKING:
    from plant_export.exported_network import ExportedNetwork

CARD = "export.json"
EXPORTED_LABELS_FILE = "labels.json"
MODEL_CARD, LIGHT_LOCK = "README.md", "requirements-light.lock"
EXPORT_FORMAT = 2
NAME_FILES = ("titles", "vocabulary", "evidence", "rejects")  # options that name a file


def run(context: StageContext, options: ExportOptions) -> Result:
    """Write the folder completely or not at all; the run does not change."""
    target = _writable(options, force=context.force)
    source = context.input("finetune", context.tag)
    corpus = context.corpus(source)
    trained_on = find_own_corpus(Run.open(context.run_path), StageFolder(source))
    # damaged files are refused before anything is written
    combination = read_scorers(source, corpus.labels, corpus.analyser, context.component)
    network = _open_network(context, source, corpus, options.onnx)
    labels = zip(corpus.labels.ids, corpus.labels.titles, corpus.labels.train_counts, strict=True)
    relevance = context.find_input("mig") if network is not None and network.needs_words else None
    graphs: dict[str, Any] = {}
    with replacing_folder(target) as folder:
        _copy_model(
            context.run_path,
            trained_on,
            {"finetune": source, **({} if relevance is None else {"mig": relevance})},
            folder,
        )
        if network is not None:
            graphs = network.write(folder, merge=options.merge, reporter=context.reporter)
        else:
            shutil.copyfile(_find_light_lock(), folder / LIGHT_LOCK)
        write_json(
            folder / EXPORTED_LABELS_FILE,
            [{"label": label, "title": title, "documents": n} for label, title, n in labels],
        )
        fused = None if combination is None else combination.scorers
        parts = [
            *(["a network"] if network else []),
            *(one.name for one in (fused.scorers if fused else ())),
        ]
        written = {} if network is None else network.written
        base = None if Path(str(written.get("base_model"))).exists() else written.get("base_model")
        card = write_model_card(
            context.run_path,
            trained_on,
            source,
            target.name,
            parts=parts,
            base=base,
            licence=options.licence,
            light_lock=None if network is not None else LIGHT_LOCK,
        )
        (folder / MODEL_CARD).write_text(card, "utf-8")
        files = {
            str(path.relative_to(folder)): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        hashes = {name: hash_file(path) for name, path in files.items()}
        sizes = {name: path.stat().st_size for name, path in files.items()}
        write_json(folder / CARD, {**_card(network, corpus), **graphs, "files": hashes})
        context.confirm_inputs()
    if network is not None:
        network.warn_of_base(context.reporter)
    columns = [Column(name="file"), Column(name="bytes", kind="count")]
    table = Table(
        title=f"Exported to {target}",
        columns=columns,
        rows=list(sizes.items()),
        notes=[f"{CARD} says what each is"],
    )
    next_step = f"plant suggest --run {shlex.quote(str(target))} --text TEXT"
    return Result(
        tables=[table],
        data={"folder": str(target), "backbone": written, "files": hashes},
        next_step=next_step,
    )


OPEN_NETWORK = Named("plant_export.exported_network:ExportedNetwork")
"""It imports torch."""


def _open_network(
    context: StageContext, source: Path, corpus: Corpus, graphs: str | None
) -> ExportedNetwork | None:
    """The network of the model, if it has one; `graphs`: of ONNX, in which numbers."""
    if has_network(source):
        opened: ExportedNetwork = OPEN_NETWORK(context, source, corpus, graphs)
        return opened
    if graphs is not None:
        raise ComponentError(
            "a model without a network has no ONNX graphs",
            where="--onnx",
            expected="a model with a network",
            todo="export without --onnx",
        )
    return None


def _copy_model(run: Path, corpus: Path, stages: Mapping[str, Path], target: Path) -> None:
    """Write a run of some finished stages, by the names that they get, without the corpus:
    whoever has it names it (`data.path`).
    """
    opened, record = Run.open(run), CorpusRecord.read(corpus)
    sources = {
        Path(path).name: digest for path, digest in opened.header.sources.items()
    }  # without their folders
    bound = {"data_hash": record.data_hash, "label_hash": record.label_hash, "former": []}
    copy = Run(target, opened.header.model_copy(update={**bound, "sources": sources}))
    write_json(target / HEADER_NAME, copy.header.model_dump(mode="json"))
    copy.corpus_path.mkdir()
    outputs = {name: record.outputs[name] for name in KEPT_FOR_MODELS if name in record.outputs}
    for name in outputs:
        shutil.copyfile(corpus / name, copy.corpus_path / name)
    shown = {
        "source": _hide(record.source),
        "files": [Path(file).name for file in record.files],
        "outputs": outputs,
    }
    record.model_copy(update=shown).write(copy.corpus_path)
    sections: dict[str, Any] = {}
    for name, source in stages.items():
        sections |= _copy_stage(StageFolder(source), copy.folder(name)).sections
    kept: dict[str, Any] = {name: sections[name] for name in ("data", "model") if name in sections}
    copy.recipe_path.write_text(
        dump_yaml({"summary": "A trained model without its corpus.", **kept}), "utf-8"
    )


def _copy_stage(source: StageFolder, target: StageFolder) -> StageRecord:
    before = source.record()
    assert before is not None  # it is finished
    outputs = {
        name: digest
        for name, digest in source.hash_outputs(known=before.outputs).items()
        if name != VALIDATION_FILE
    }
    ignored = shutil.ignore_patterns(VALIDATION_FILE, CHECKPOINTS_FOLDER, ".*")
    shutil.copytree(source.path, target.path, ignore=ignored)
    sections = {
        name: _hide(values) if name == "data" else values
        for name, values in before.sections.items()
    }
    changed: dict[str, Any] = {
        "tag": None,
        "sections": sections,
        "inputs": {},
        "files": {},
        "outputs": outputs,
        "warnings": [],
    }
    changed["environment"] = {"packages": before.environment.get("packages", {})}
    changed["facts"] = {name: Facts.of(target.path / name) for name in outputs}
    record = before.model_copy(update=changed)
    target.write(record)
    return record


def _find_light_lock() -> Path:
    """The file: beside this module in a wheel, at the root of a clone."""
    here = Path(__file__).parent
    return next(path for path in (here / LIGHT_LOCK, here.parents[1] / LIGHT_LOCK) if path.exists())


def _hide(data: Mapping[str, Any]) -> dict[str, Any]:
    """The section `data` without folders."""
    names = {key: Path(data[key]).name for key in NAME_FILES if data.get(key)}
    return {**data, **names, "path": None}


def _writable(options: ExportOptions, *, force: bool) -> Path:
    """The folder to write: empty, or with --force an earlier export."""
    target = Path(os.path.expanduser(options.folder)).absolute()
    empty = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    export = (target / CARD).is_file()
    if empty or (force and export):
        return target
    raise UsageError(
        f"{'an earlier export' if export else 'something other than an export'} is in the way",
        where=str(target),
        expected="a folder that does not exist or is empty",
        todo="repeat the command with --force to replace it"
        if export
        else "name another folder: only an export is ever replaced",
    )


def _card(network: ExportedNetwork | None, corpus: Corpus) -> dict[str, Any]:
    parts = (
        "scorers"
        if network is None
        else "a backbone reads, label attention scores; scorers may add their scores"
    )
    return {
        "format": EXPORT_FORMAT,
        "what": f"A model that assigns labels to texts: {parts}. Trained with plant (PLANT).",
        "plant_version": __version__,
        "created": current_time(),
        **({} if network is None else network.describe()),
        "labels": {
            "file": EXPORTED_LABELS_FILE,
            "count": len(corpus.labels),
            "hash": corpus.labels.hash,
            "order": "rows of the decoder's tables",
        },
        "data_hash": corpus.data_hash,
    }
