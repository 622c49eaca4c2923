"""What runs look like after commands that came one after the other: what every meeting is
compared with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Literal

from plant_cli.data.files import TEMPORARY, hash_file
from tests.faults.campaign.commands import listing
from tests.faults.processes import Ending, run_command

RECIPE = """
summary: A very small experiment.
data: {dataset: {name: synthetic-clinic, documents: 60, labels: 8, seed: 3}}
model:
  backbone: {name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 256}
  decoder: {name: label-attention, heads: 2, pool: 8}
machine: {precision: fp32, device: cpu, threads: 1}
mig: {k: 20}
pretrain-attn: {epochs: 1}
finetune: {epochs: 1}
eval: {bootstrap: 20}
"""
RUN, TWIN, OUT = "run", "twin", "out"
STAGES = ("mig", "pretrain-attn", "finetune", "predict", "eval")
OTHER = {  # the other variant of each stage
    "mig": ("--set", "mig.k=10"),
    "pretrain-attn": ("--seed", "1"),
    "finetune": ("--seed", "1"),
    "predict": ("--top-k", "5"),
    "eval": ("--set", "eval.bootstrap=30"),
}
LABEL = "Q04.7"  # of the made-up clinic
History = tuple["Command", ...]


@dataclass(frozen=True)
class Command:
    """A command of a meeting."""

    name: str  # how trials call it: `mig`, or `mig'` with other options
    arguments: tuple[str, ...]  # its command line, without recipe and run
    answers: Literal["output", "exports", "code"] | None = (
        None  # what of a reader is compared; None for what writes
    )
    run: str = RUN  # the folder of its run

    def line(self, *more: str) -> list[str]:
        """The whole command line after `plant`."""
        recipe = (
            ("--recipe", "recipe.yaml")
            if self.arguments[0] in STAGES and self.arguments[1:2] not in (("show",), ("edit",))
            else ()
        )
        return [*self.arguments, *recipe, *more, "--run", self.run]


def stage(name: str, *, other: bool = False, run: str = RUN) -> Command:
    """The command of a stage, perhaps with other options than the rest of the run was made with."""
    return Command(f"{name}'" if other else name, (name, *(OTHER[name] if other else ())), run=run)


BASE = tuple(stage(name) for name in STAGES)
OTHER_CORPUS = Command("mig of another corpus", ("mig", "--set", "data.dataset.seed=4"))
EDITS = tuple(
    Command(f"edit {word}", ("mig", "edit", LABEL, "--deny", word))
    for word in ("years", "with", "the")
)
JSON = ("--format", "json", "--quiet")
READERS = (
    Command("suggest", ("suggest", "--text", "acute cough and fever", *JSON), "output"),
    Command("show", ("mig", "show", LABEL, *JSON), "output"),
    Command("verify", ("verify", *JSON), "code"),
    Command("export", ("export", OUT, *JSON), "exports"),
)


class Histories:
    """Runs after commands that came one after the other, each made once in an empty folder for
    them.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self._known = {(): State(place / "state0")}
        (place / "state0").mkdir()
        (place / "state0" / "recipe.yaml").write_text(RECIPE)

    def after(self, history: History) -> State:
        """The run after these commands; it is not `possible` if one of them refuses there."""
        if history not in self._known:
            before, state = self.after(history[:-1]), State(self.place / f"state{len(self._known)}")
            self._known[history] = state
            shutil.copytree(before.folder, state.folder, symlinks=True)
            state.possible = (
                before.possible
                and run_command(history[-1].line(*force(history[-1])), state.folder).code == 0
            )
        return self._known[history]

    def orders(self, start: History, commands: History) -> Iterator[State]:
        """The possible states after these commands, in every order."""
        for order in permutations(commands):
            if (state := self.after((*start, *order))).possible:
                yield state


class State:
    """A run between commands; its folder holds the recipe, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.possible = True
        self._answers: dict[Command, str] = {}

    @cached_property
    def files(self) -> frozenset[tuple[str, str]]:
        """See `list_run`."""
        return list_run(self.folder / RUN)

    def answer(self, reader: Command) -> str:
        """What a reader says of this run."""
        if reader not in self._answers:
            self._answers[reader] = read_answer(
                reader, run_command(reader.line(), self.folder), self.folder
            )
            shutil.rmtree(self.folder / OUT, ignore_errors=True)
        return self._answers[reader]


def force(command: Command) -> tuple[str, ...]:
    """The flag with which a stage replaces what is there; other commands do not know it."""
    return () if command.answers or command in EDITS else ("--force",)


def read_answer(reader: Command, ending: Ending, folder: Path) -> str:
    """What a reader gave: its exit code, and its output, or the files that it exported, but for
    the one that holds the time.
    """
    if reader.answers == "exports":
        out = folder / OUT
        files = (
            path for path in sorted(out.rglob("*")) if path.is_file() and path.name != "export.json"
        )
        return json.dumps(
            [ending.code, [(str(path.relative_to(out)), hash_file(path)) for path in files]]
        )
    shown = ending.output[
        ending.output.find("{") :
    ]  # without warnings: that a stage is just being made is true at that moment only
    return json.dumps([ending.code, shown if reader.answers == "output" else ""])


def list_run(run: Path) -> frozenset[tuple[str, str]]:
    """Every file of a run with its hash, its inputs and options as recorded, and what it is
    bound to; nothing that holds a time.
    """
    if not (run / "run.json").exists():
        return frozenset()
    header = json.loads((run / "run.json").read_text("utf-8"))
    found = {("run.json", f"{header['data_hash']} {header['label_hash']}")}
    if (run / "recipe.yaml").exists():
        found.add(("recipe.yaml", hash_file(run / "recipe.yaml")))
    for folder in (
        path
        for path in run.iterdir()
        if path.is_dir() and not path.name.startswith(".") and path.name != "cache"
    ):
        found |= {(f"{folder.name}/{name}", state) for name, state in listing(folder)}
        if (folder / "stage.json").exists():
            record = json.loads((folder / "stage.json").read_text("utf-8"))
            found.add(
                (
                    f"{folder.name}/stage.json",
                    json.dumps([record[key] for key in ("status", "options", "inputs", "outputs")]),
                )
            )
    return frozenset(found)


def list_leftovers(run: Path) -> list[str]:
    """Files of a run that only an unfinished command may have."""
    hidden = (
        path
        for path in run.rglob(".*")
        if TEMPORARY.fullmatch(path.name) or path.name.endswith(".previous")
    )
    return sorted(str(path.relative_to(run)) for path in hidden)
