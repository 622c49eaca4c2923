"""The commands that the campaign disturbs, and a finished run of them to compare with."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from plant_cli.base.hashing import hash_file
from tests.faults.campaign.processes import Ending, run_command

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
finetune-baseline: {init: random, epochs: 1}
predict: {auc: true}
eval: {bootstrap: 50}
eval-baseline: {bootstrap: 50}
significance: {systems: [finetune, finetune-baseline], bootstrap: 50, permutations: 200}
diff: {systems: [finetune, finetune-baseline]}
thresholds: {target: [f1], bootstrap: 50}
"""


@dataclass(frozen=True)
class Command:
    """A command that writes into the run.

    Args:
        folder: the folder of the run that it writes.
        arguments: its command line, without recipe and run.
    """

    folder: str
    arguments: tuple[str, ...]

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
    """A run that nothing disturbed: a copy of its folder after each command, and how long each took.

    Args:
        place: an empty folder that the copies are written into.

    Raises:
        RuntimeError: a command fails without any fault.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.seconds: list[float] = []
        (place / "recipe.yaml").write_text(RECIPE)
        self.before(0).mkdir()
        for number, command in enumerate(COMMANDS):
            shutil.copytree(self.before(number), self.before(number + 1))
            ending = run_command(command.line, self.before(number + 1))
            if ending.code != 0:
                raise RuntimeError(f"{command.arguments} fails without any fault: {ending.output}")
            self.seconds.append(ending.seconds)

    def before(self, number: int) -> Path:
        """The run as it is before command `number` of `COMMANDS`; that of their number is the finished one."""
        return self.place / f"run{number}"

    def copy(self, command: Command, target: Path) -> Path:
        """A copy of the run as it is before a command, to do harm to."""
        start = self.before(0 if command is WHOLE else COMMANDS.index(command))
        return Path(shutil.copytree(start, target, symlinks=True))

    def duration(self, command: Command) -> float:
        """How many seconds a command takes that nothing disturbs."""
        return sum(self.seconds) if command is WHOLE else self.seconds[COMMANDS.index(command)]

    def compare(self, command: Command, run: Path) -> list[str]:
        """What of the folders that a command writes differs: files missing, left over, or with other bytes."""
        folders = [one.folder for one in COMMANDS] if command is WHOLE else [command.folder]
        done = self.before(len(COMMANDS))
        wanted, found = ({(name, *item) for name in folders for item in listing(place / name)} for place in (done, run))
        return sorted(f"{name}/{file}: {state}" for name, file, state in wanted ^ found)


def listing(folder: Path) -> set[tuple[str, str]]:
    """Every file of a folder with its hash, its recorded one where it is an output, and the status of its stage.

    Checkpoints are passed over, for when they are taken depends on the clock; so is what the record says of times.
    """
    outputs, files = {}, set()
    if (folder / "stage.json").exists():
        record = json.loads((folder / "stage.json").read_text("utf-8"))
        outputs, files = record["outputs"], {("status", str(record["status"]))}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and not name.startswith("checkpoints/") and name != "stage.json":
            files |= {(name, hash_file(path)), (name, outputs.get(name, "no output"))}
    return files


def finish(command: Command, run: Path) -> Ending:
    """Do a command again in the way that its messages advise: resume, or repeat where there is nothing to resume."""
    ending = run_command([*command.line, "--resume"], run)
    return ending if ending.code == 0 or "--resume" not in ending.output else run_command(command.line, run)
