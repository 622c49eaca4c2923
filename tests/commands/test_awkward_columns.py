"""Tables whose columns are called otherwise, are several, or stand in another case: every command
that reads them finds what `plant train` finds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from builders import run_at

from plant_cli.api import Result, SilentReporter

TITLES = [f"{('Law of courts', 'Waves of light')[n % 2]} {n}" for n in range(60)]
ABSTRACTS = [f"About {('judges', 'optics')[n % 2]} in chapter {n}" for n in range(60)]
JOINED = [f"{title}\n{abstract}" for title, abstract in zip(TITLES, ABSTRACTS, strict=True)]
LABELS = [("law", "physics;light")[n % 2] for n in range(60)]
SPLITS = [("train", "train", "train", "validation", "test")[n % 5] for n in range(60)]
IDS, NUMBERS = [f"b{n}" for n in range(60)], [str(n) for n in range(1, 61)]
TABLES: dict[str, dict[str, list[str]]] = {
    "plain": {"doc_id": IDS, "text": JOINED, "labels": LABELS},
    "two texts": {"doc_id": IDS, "title": TITLES, "abstract": ABSTRACTS, "labels": LABELS},
    "two of other names": {
        "PPN": IDS,
        "Titel": TITLES,
        "Abstract": ABSTRACTS,
        "Schlagwort": LABELS,
    },
    "other names": {"ID": IDS, "Beschreibung": JOINED, "Schlagwörter": LABELS},
    "other case": {"DOC_ID": IDS, "TEXT": JOINED, "Labels": LABELS},
    "index": {"": NUMBERS, "doc_id": IDS, "Text": JOINED, "LABELS": LABELS},
    "index, no id": {"Unnamed: 0": NUMBERS, "note": JOINED, "codes": LABELS},
}
COMMANDS = ("data check", "data stats", "mig", "finetune", "eval")


class Desk:
    """Commands on one table, each in a run folder of its own."""

    def __init__(self, folder: Path, columns: dict[str, list[str]]) -> None:
        self.folder, self.columns = folder, columns
        self.write("table.csv", {**columns, "split": SPLITS})
        folder.joinpath("found.jsonl").write_text(
            "".join(
                json.dumps({"doc_id": doc_id, "labels": ["law"], "scores": [0.9]}) + "\n"
                for doc_id, split in zip(self.ids, SPLITS, strict=True)
                if split == "test"
            )
        )

    @property
    def ids(self) -> list[str]:
        return IDS if IDS in self.columns.values() else NUMBERS  # as rows are numbered

    def write(self, name: str, columns: dict[str, list[str]]) -> str:
        pl.DataFrame(columns).write_csv(self.folder / name)
        return str(self.folder / name)

    def __call__(self, command: str) -> tuple[Result, set[str]]:
        """What a command gives, and what it says of columns."""
        reporter, flags = SilentReporter(), {"data": {"path": str(self.folder / "table.csv")}}
        if command == "eval":
            flags["eval"] = {"predictions": str(self.folder / "found.jsonl")}
        sets = {"mig": ["mig.k=5"], "finetune": ["finetune.network=false"]}.get(command, [])
        tag = "other" if command == "eval" else None
        found = run_at(self.run(command), command, *sets, tag=tag, flags=flags, reporter=reporter)
        return found, {note for note in reporter.notes if note.endswith("-column)")}

    def run(self, command: str) -> Path:
        return self.folder / command.replace(" ", "-")

    def header(self, command: str) -> Any:
        return json.loads((self.run(command) / "run.json").read_text())


@pytest.mark.parametrize("name", TABLES)
def test_every_reader_finds_the_columns_of_train(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path, TABLES[name])
    _, told = desk("train")
    assert len(told) == {"plain": 0, "two texts": 1, "index": 2, "index, no id": 2}.get(name, 3)
    found = {command: desk(command) for command in COMMANDS}
    assert {command: notes for command, (_, notes) in found.items()} == dict.fromkeys(
        COMMANDS, told
    )
    hashes = {
        desk.header(command)[f"{part}_hash"]
        for command in ("train", "mig", "finetune", "eval")
        for part in ("data", "label")
    }
    assert len(hashes) == 2  # of the same texts and ids, and of the same labels
    plain = Desk(tmp_path / "finetune", TABLES["plain"])
    assert found["data stats"][0].data == plain("data stats")[0].data
    assert found["eval"][0].data["documents"] == SPLITS.count("test")


@pytest.mark.parametrize("name", TABLES)
def test_suggest_finds_the_texts_of_a_new_table(tmp_path: Path, name: str) -> None:
    """Whatever the table was called that the model was trained on."""
    for trained in dict.fromkeys(["plain", name]):
        folder = tmp_path / trained
        folder.mkdir()
        desk = Desk(folder, TABLES[trained])
        desk("finetune")
        found: dict[str, pl.DataFrame] = {}
        for table in ("plain", name):
            cells = {column: one for column, one in TABLES[table].items() if one != LABELS}
            output = folder / "labelled.jsonl"
            given = {"path": desk.write("new.csv", cells), "output": str(output)}
            run_at(desk.run("finetune"), "suggest", flags={"suggest": given}, force=True)
            found[table] = pl.read_ndjson(output)
            assert found[table]["doc_id"].to_list() == (IDS if IDS in cells.values() else NUMBERS)
        assert found["plain"].drop("doc_id").equals(found[name].drop("doc_id"))
        assert found[name]["labels"].list.len().sum() > 0
