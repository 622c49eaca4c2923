"""The commands that the campaign disturbs, and a finished run of them to compare with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from plant_cli.api import DataSection, DatasetSpec, StageSpec
from plant_cli.data.documents import read_frames
from plant_cli.data.files import hash_file
from plant_cli.registry import installed
from tests.faults.campaign.pairs import run_pair
from tests.faults.processes import Ending, run_command

LONG = 30  # characters of a sentence that no message holds by chance
RECIPE = """
summary: A small experiment.
data: {dataset: {name: synthetic-clinic, documents: 100, labels: 12, seed: 3}}
model:
  backbone: {name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}
  decoder: {name: label-attention, heads: 2, pool: 8}
machine: {precision: fp32, device: cpu, threads: 1}
mig: {k: 20}
pretrain-lm: {embedding: 16, hidden: 16, layers: 1, max_words: 200, epochs: 2, checkpoint_minutes: 0.001}
pretrain-attn: {epochs: 3, checkpoint_minutes: 0.001}
finetune: {epochs: 3, checkpoint_minutes: 0.001}
finetune-baseline: {init: random, head: random, scorers: none, epochs: 1}
predict: {auc: true}
eval: {bootstrap: 50}
eval-baseline: {bootstrap: 50}
significance: {systems: [finetune, finetune-baseline], bootstrap: 50, permutations: 200}
diff: {systems: [finetune, finetune-baseline]}
thresholds: {target: [f1], bootstrap: 50}
"""


@dataclass(frozen=True)
class Command:
    """A command that writes into the run."""

    folder: str  # the folder of the run that it writes
    arguments: tuple[str, ...]  # its command line, without recipe and run

    @property
    def shared(self) -> bool:
        """Whether processes that are launched together share its work."""
        return installed().find(StageSpec, self.arguments[0]).parallel

    @property
    def line(self) -> list[str]:
        """The whole command line after `plant`."""
        recipe = [] if self.arguments[0] == "run" else ["--recipe", "../recipe.yaml"]
        return [*self.arguments, *recipe, "--run", "."]


COMMANDS = (
    Command("mig", ("mig",)),
    Command("pretrain-lm", ("pretrain-lm",)),
    Command("pretrain-attn", ("pretrain-attn",)),
    Command("finetune", ("finetune",)),
    Command("finetune-baseline", ("finetune", "--tag", "baseline")),
    Command("predict", ("predict",)),
    Command("eval", ("eval",)),
    Command("eval-baseline", ("eval", "--tag", "baseline")),
    Command("significance", ("significance",)),
    Command("diff", ("diff", "finetune", "finetune-baseline")),
    Command("thresholds", ("thresholds",)),
)
WHOLE = Command("run", ("run", "../recipe.yaml"))
ALL = (*COMMANDS, WHOLE)


class Reference:
    """A run that nothing disturbed: a copy of its folder after each command, and how long each
    took.

    The copies are written into an empty folder. Commands that can be shared are run by one or two
    `processes`.
    """

    def __init__(self, place: Path, processes: int = 1) -> None:
        self.place, self.processes = place, processes
        self.seconds: list[float] = []
        self.sentences = list_sentences()
        self.quoted: list[
            str
        ] = []  # what commands have said of the texts of documents so far; it must stay empty
        alone = "auc: true"  # what one process does alone
        (place / "recipe.yaml").write_text(
            RECIPE if processes == 1 else RECIPE.replace(alone, "auc: false")
        )
        self.before(0).mkdir()
        for number, command in enumerate(COMMANDS):
            shutil.copytree(self.before(number), self.before(number + 1))
            ending = self.run(command.line, self.before(number + 1), shared=command.shared)
            if ending.code != 0:
                raise RuntimeError(f"{command.arguments} fails without any fault: {ending.output}")
            self.seconds.append(ending.seconds)

    def run(self, line: Sequence[str], folder: Path, *, shared: bool = True, **how: Any) -> Ending:
        """Run a command in one process, or in two where this reference is that of two and the
        command can be shared.
        """
        ending = (
            run_pair(line, folder, **how)
            if shared and self.processes == 2
            else run_command(line, folder, **how)
        )
        self.quoted += [sentence for sentence in self.sentences if sentence in ending.output]
        return ending

    def before(self, number: int) -> Path:
        """The run as it is before command `number` of `COMMANDS`; that of their number is the
        finished one.
        """
        return self.place / f"run{number}"

    def copy(self, command: Command, target: Path) -> Path:
        """A copy of the run as it is before a command, to do harm to."""
        start = self.before(0 if command is WHOLE else COMMANDS.index(command))
        return Path(shutil.copytree(start, target, symlinks=True))

    def duration(self, command: Command) -> float:
        """How many seconds a command takes that nothing disturbs."""
        return sum(self.seconds) if command is WHOLE else self.seconds[COMMANDS.index(command)]

    def compare(self, command: Command, run: Path) -> list[str]:
        """What of the folders that a command writes differs: files missing, left over, or with
        other bytes.
        """
        folders = [one.folder for one in COMMANDS] if command is WHOLE else [command.folder]
        done = self.before(len(COMMANDS))
        wanted, found = (
            {(name, *item) for name in folders for item in listing(place / name)}
            for place in (done, run)
        )
        return sorted(f"{name}/{file}: {state}" for name, file, state in wanted ^ found)


def list_sentences() -> list[str]:
    """The longer sentences of the corpus, read in a process of its own: polars starts threads,
    and what is forked afterwards hangs.
    """
    command = [
        sys.executable,
        "-c",
        f"import json; from {__name__} import _read_sentences; "
        "print(json.dumps(_read_sentences()))",
    ]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def _read_sentences() -> list[str]:
    given = yaml.safe_load(RECIPE)["data"]["dataset"]
    spec = installed().find(DatasetSpec, given.pop("name"))
    frames = read_frames(spec.load(DataSection(), spec.options(**given)))
    texts = [text for frame in frames.values() for text in frame["text"]]
    return sorted(
        {sentence for text in texts for sentence in text.split(". ") if len(sentence) >= LONG}
    )


def listing(folder: Path) -> set[tuple[str, str]]:
    """Every file of a folder with its hash, its recorded one where it is an output, and the status
    of its stage.

    Checkpoints are passed over, for when they are taken depends on the clock; so is what the record
    says of times, and the command that a result names.
    """
    outputs, files = {}, set()
    if (folder / "stage.json").exists():
        record = json.loads((folder / "stage.json").read_text("utf-8"))
        outputs, files = record["outputs"], {("status", str(record["status"]))}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and name == "significance.json":
            result = json.loads(path.read_text("utf-8")) | {"command": "any"}
            files |= {(name, json.dumps(result)), (name, "output" if name in outputs else "")}
        elif path.is_file() and not name.startswith("checkpoints/") and name != "stage.json":
            files |= {(name, hash_file(path)), (name, outputs.get(name, "no output"))}
    return files


def finish(reference: Reference, command: Command, run: Path) -> Ending:
    """Do a command again in the way that its messages advise: resume, or repeat where there is
    nothing to resume.
    """
    ending = reference.run([*command.line, "--resume"], run)
    return (
        ending
        if ending.code == 0 or "--resume" not in ending.output
        else reference.run(command.line, run)
    )
