"""Nothing that a corpus, a recipe, a record, a plugin or an archive says makes a command read
or write outside of where it belongs.
"""

from __future__ import annotations

import json
import os
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from builders import run_at

from plant_cli.api import ArtefactError, DataError, PlantError, Request, SilentReporter
from plant_cli.data.files import read_json, write_json
from plant_cli.registry import installed
from plant_cli.runs.runner import run_recipe
from plant_cli.scoring.scorer_files import read_scorers

OUTSIDE = (
    "../../outside",
    "/tmp/plant-outside",
    "..",
    ".",
    "a/b",
    "a\\b",
    "con\0trol",
    "-rf",
    "~",
    "$HOME",
    "mig",
    "stage.json",
)
OUTSIDE += ("\x1b[31mred",)


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A corpus whose labels, ids and titles are paths, options and control characters."""
    names = [name for name in OUTSIDE if "\0" not in name]
    rows = [
        {
            "doc_id": f"{name}{number}" if number else name,
            "text": f"word{at} and fever {number}",
            "labels": [name],
            "split": split,
        }
        for at, name in enumerate(names)
        for number, split in enumerate(("train", "train", "train", "validation", "test"))
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "corpus.parquet")
    pl.DataFrame({"label": names, "title": names}).write_parquet(tmp_path / "titles.parquet")
    return tmp_path


def act(place: Path, name: str, *sets: str, **request: Any) -> Any:
    given = [
        f"data.path={place / 'corpus.parquet'}",
        f"data.titles={place / 'titles.parquet'}",
        "machine.device=cpu",
        *sets,
    ]
    return run_at(place / "run", name, *given, **request)


def test_labels_ids_and_titles_name_no_files(hostile: Path) -> None:
    before = tree(hostile)
    act(hostile, "mig", "mig.k=5")
    act(hostile, "finetune", "finetune.network=false")
    for name in ("predict", "eval"):
        act(hostile, name, *(("eval.bootstrap=20",) if name == "eval" else ()))
    act(hostile, "mig edit", flags={"mig edit": {"label": "../../outside", "deny": ("fever",)}})
    act(hostile, "export", f"export.folder={hostile / 'exported'}")
    made = {name.split("/")[0] for name in tree(hostile) - before}
    assert made == {"run", "exported"}
    assert not Path("/tmp/plant-outside").exists()
    plain = [
        name
        for name in tree(hostile / "run")
        if any(part in ("..", "~", "$HOME") or "outside" in part for part in Path(name).parts)
    ]
    assert plain == []


def test_ids_that_are_paths_name_no_files_of_another_format(hostile: Path) -> None:
    options = {
        "path": str(hostile / "corpus.parquet"),
        "output": str(hostile / "out"),
        "to": "annif-folder",
    }
    with pytest.raises(DataError, match="cannot be the name of a file"):
        run_at(hostile / "run", "data convert", flags={"data convert": options})
    assert not (hostile / "outside.txt").exists()
    assert not (hostile / "out").exists()


@pytest.mark.parametrize("tag", OUTSIDE)
def test_tags_and_sections_name_no_folders_elsewhere(clinic: Any, tmp_path: Path, tag: str) -> None:
    if tag in ("mig", "stage.json"):  # harmless: they only look like names of ours
        return
    recipe = tmp_path / "r.yaml"
    recipe.write_text(json.dumps({"mig": {}, f"mig-{tag}": {"k": 5}}))
    before = tree(tmp_path)
    with pytest.raises(PlantError, match="cannot name a folder"):
        clinic("mig", "mig.k=5", tag=tag)
    with pytest.raises(PlantError):
        run_recipe(
            Request(
                registry=installed(),
                run_path=tmp_path / "run",
                recipe=str(recipe),
                reporter=SilentReporter(),
            )
        )
    assert tree(tmp_path) == before


@pytest.mark.parametrize("key", ["outputs", "facts", "inputs"])
def test_a_record_that_names_files_elsewhere_is_refused(clinic: Any, key: str) -> None:
    clinic("mig", "mig.k=5")
    path = clinic.path / "mig" / "stage.json"
    record = read_json(path, "the record")
    value: Any = {"size": 1, "modified": 1} if key == "facts" else "0" * 64
    write_json(path, {**record, key: {**record[key], "../../outside": value}})
    with pytest.raises(ArtefactError, match="the record of the stage mig is damaged"):
        clinic("finetune", "finetune.init=random", "finetune.head=random", "finetune.scorers=none")


def test_a_scorer_that_names_a_file_elsewhere_is_refused(hostile: Path) -> None:
    act(hostile, "finetune", "finetune.network=false", "finetune.scorers=[words]")
    path = hostile / "run" / "finetune" / "scorers.json"
    content = read_json(path, "the scorers")
    content["scorers"][0]["name"] = "../../../titles"
    write_json(path, content)
    record = hostile / "run" / "finetune" / "stage.json"
    record.write_text(
        record.read_text().replace('"status": "done"', '"status": "failed"')
    )  # so that its hash is not asked for
    with pytest.raises(PlantError):
        act(hostile, "suggest", flags={"suggest": {"text": "fever"}})
    labels, analyser = (
        SimpleNamespace(hash=content[f"{name}_hash"]) for name in ("label", "analyser")
    )
    with pytest.raises(ArtefactError, match="the file of scorers is damaged"):
        read_scorers(hostile / "run" / "finetune", labels, analyser, installed().resolve)  # type: ignore[arg-type]


def test_what_is_written_never_goes_through_a_link(clinic: Any, tmp_path: Path) -> None:
    """Files of the run that somebody made links: they are replaced, and what they lead to stays."""
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    clinic("mig", "mig.k=5")
    run = clinic.path
    links = [
        run / "recipe.yaml",
        run / "mig" / "stage.json",
        run / "mig" / "edits.yaml",
        run / "mig.edits.yaml.bak",
        run / "mig" / "mig.parquet",
    ]
    for path in links:
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
    (run / ".mig.failed").symlink_to(tmp_path)
    for name, request in (
        ("mig", {"force": True}),
        ("mig", {"force": True}),
        ("mig edit", {"flags": {"mig edit": {"clear": True}}}),
    ):
        with suppress(PlantError):  # the record is no record any more
            clinic(name, *(("mig.k=5",) if name == "mig" else ()), **request)
    assert precious.read_text() == "years of work"
    assert tmp_path.exists()


def test_an_archive_is_never_unpacked(tmp_path: Path) -> None:
    """A matrix whose members are called as paths: only the known names are read, and nothing is
    written.
    """
    from plant_formats.prediction_matrices import load_sparse

    archive = tmp_path / "inner" / "m.npz"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as packed:
        for name in ("../outside.npy", "/tmp/plant-outside.npy", "format.npy"):
            packed.writestr(name, b"\x93NUMPY")
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=r"\w"):
        load_sparse(archive)
    assert tree(tmp_path) == before
    assert not os.path.lexists("/tmp/plant-outside.npy")


SECRET = "patient Zebedee Quillfeather of 14 Larkspur Lane was admitted with a fever"


def test_no_document_stands_in_records_notes_or_warnings(tmp_path: Path) -> None:
    """Single words are results of `mig`; that more than a few of one text stand together would
    be a text.
    """
    rows = [
        {"doc_id": f"d{i}", "text": f"{SECRET} {i}", "labels": [label], "split": "train"}
        for i, label in enumerate("ab" * 4)
    ]
    rows += [
        {
            "doc_id": f"{split}{i}",
            "text": f"{SECRET.upper()} {i}{split}",
            "labels": ["a"],
            "split": split,
        }
        for split in ("validation", "test")
        for i in range(2)
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "corpus.parquet")
    (tmp_path / "titles.parquet").write_bytes(b"")
    pl.DataFrame({"label": ["a", "b"], "title": ["A", "B"]}).write_parquet(
        tmp_path / "titles.parquet"
    )
    reporter = SilentReporter()
    sets = [
        f"data.path={tmp_path / 'corpus.parquet'}",
        "machine.device=cpu",
        "finetune.network=false",
        "eval.bootstrap=20",
    ]
    for name in ("mig", "finetune", "predict", "eval"):
        run_at(
            tmp_path / "run", name, *(sets if name != "predict" else sets[:2]), reporter=reporter
        )
    said = [
        *reporter.notes,
        *reporter.warnings,
        *(
            path.read_text("utf-8", "replace")
            for path in (tmp_path / "run").rglob("*")
            if path.is_file()
        ),
    ]
    found = [
        text for text in said if "Zebedee Quillfeather" in text or "ZEBEDEE QUILLFEATHER" in text
    ]
    assert found == []
