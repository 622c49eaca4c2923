"""A trained model as a run of its own, to be passed on: without its corpus, and without the place of that."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plant_cli.data.corpus_files import LABELS_FILE, PARENTS_FILE, STATISTICS_FILE, CorpusRecord
from plant_cli.data.files import write_json
from plant_cli.data.records import Facts, StageRecord
from plant_cli.runs.folder import CHECKPOINTS_FOLDER, HEADER_NAME, VALIDATION_FILE, Run, StageFolder
from plant_cli.runs.recipes import dump_yaml

PASSED_ON = (LABELS_FILE, PARENTS_FILE, STATISTICS_FILE)  # of the corpus
NAME_FILES = ("titles", "vocabulary", "evidence", "rejects")  # options that name a file


def copy_model(run: Path, stages: Mapping[str, Path], target: Path) -> None:
    """Write a run of some finished stages, by the names that they get, into a folder that is there.

    The corpus has no place in it: whoever has the corpus names it (`--set data.path=PATH`), and it is compared by hash.
    """
    opened = Run.open(run)
    record = CorpusRecord.read(opened.corpus_path)
    sources = {Path(path).name: digest for path, digest in opened.header.sources.items()}  # without their folders
    copy = Run(target, opened.header.model_copy(update={"sources": sources, "former": []}))
    write_json(target / HEADER_NAME, copy.header.model_dump(mode="json"))
    copy.corpus_path.mkdir()
    outputs = {name: record.outputs[name] for name in PASSED_ON if name in record.outputs}
    for name in outputs:
        shutil.copyfile(opened.corpus_path / name, copy.corpus_path / name)
    shown = {"source": _hide(record.source), "files": [Path(file).name for file in record.files], "outputs": outputs}
    record.model_copy(update=shown).write(copy.corpus_path)
    sections: dict[str, Any] = {}
    for name, source in stages.items():
        sections |= _copy_stage(StageFolder(source), copy.folder(name)).sections
    kept: dict[str, Any] = {name: sections[name] for name in ("data", "model") if name in sections}
    copy.recipe_path.write_text(dump_yaml({"summary": "A trained model without its corpus.", **kept}), "utf-8")


def _copy_stage(source: StageFolder, target: StageFolder) -> StageRecord:
    before = source.record()
    assert before is not None  # it is finished
    outputs = {name: digest for name, digest in source.hash_outputs(known=before.outputs).items() if name != VALIDATION_FILE}
    ignored = shutil.ignore_patterns(VALIDATION_FILE, CHECKPOINTS_FOLDER, ".*")
    shutil.copytree(source.path, target.path, ignore=ignored)
    sections = {name: _hide(values) if name == "data" else values for name, values in before.sections.items()}
    changed: dict[str, Any] = {"tag": None, "sections": sections, "inputs": {}, "files": {}, "outputs": outputs, "warnings": []}
    changed["environment"] = {"packages": before.environment.get("packages", {})}
    changed["facts"] = {name: Facts.of(target.path / name) for name in outputs}
    record = before.model_copy(update=changed)
    target.write(record)
    return record


def _hide(data: Mapping[str, Any]) -> dict[str, Any]:
    """The section `data` without folders."""
    names = {key: Path(data[key]).name for key in NAME_FILES if data.get(key)}
    return {**data, **names, "path": None}
