"""One trial: draw commands and an order of their file operations from a seed, let them meet on
a run, and judge what is left.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from tests.faults.concurrency.actors import FREE, Actor
from tests.faults.concurrency.histories import (
    BASE,
    EDITS,
    OTHER_CORPUS,
    READERS,
    RUN,
    STAGES,
    TWIN,
    Command,
    Histories,
    History,
    State,
    force,
    list_leftovers,
    list_run,
    read_answer,
    stage,
)
from tests.faults.processes import Ending, run_command
from tests.faults.reports import Trial

VERDICTS = {
    "all done": "every command ended well; the run is what some order of them, one after the other, "
    "leaves",
    "refused": "one was refused clearly, and left nothing; the others as above",
    "resumed": "one was killed; the others as above, and it could be taken up",
    "unclear": "a command failed without a clear message",
    "hung": "a command did not end",
    "stalled": "all were refused, and none was killed: nobody did the work",
    "mixed": "a run that no order of whole commands leaves, or an answer from no such run",
    "damaged": "`plant verify` finds damage, or leftovers of a command that has ended",
    "lost": "what was killed could not be taken up",
}
HARM = ("unclear", "hung", "stalled", "mixed", "damaged", "lost")
REFUSED = (
    2,
    4,
)  # the stage is finished; another process writes, or what is read is being made anew
TURNS, LONGEST_TURN = 6, 400  # operations on files that a command does before another one goes on


@dataclass(frozen=True)
class Meeting:
    """What is tried."""

    start: History  # what was done in the run before
    commands: tuple[
        tuple[Command, bool], ...
    ]  # what meets, each with whether it may replace what is there
    killed: bool = False  # whether one of them, the first, is killed on its way

    def line(self, number: int) -> list[str]:
        """The command line of one of them."""
        command, forces = self.commands[number]
        return command.line(*(force(command) if forces else ()))

    @property
    def text(self) -> str:
        """The commands, for people."""
        return " and ".join(command.name for command, _ in self.commands)


def try_once(histories: Histories, seed: int, kind: str, place: Path) -> Trial:
    """Run one trial of a kind in a folder to be made, which is removed unless the trial did
    harm; all is drawn from the seed.
    """
    drawn = random.Random(f"{kind}-{seed}")
    meeting = KINDS[kind](drawn)
    shutil.copytree(histories.after(meeting.start).folder, place, symlinks=True)
    if any(command.run == TWIN for command, _ in meeting.commands):
        _add_twin(place)
    endings, turns = _meet(meeting, place, drawn)
    verdict, evidence = _judge(meeting, endings, histories, place)
    if verdict not in HARM:
        shutil.rmtree(place)
    said = "\n".join(f"{ending.code}: {ending.output}" for ending in endings) if evidence else ""
    codes = " and ".join(str(ending.code) for ending in endings)
    return Trial(
        seed,
        kind,
        meeting.text,
        f"turns {turns}: {codes}",
        verdict,
        f"{evidence}\n{said}" if evidence else "",
    )


def _add_twin(place: Path) -> None:
    """A copy of the run that shares its cache through a link."""
    shutil.rmtree(place / RUN / "cache", ignore_errors=True)
    shutil.copytree(place / RUN, place / TWIN, symlinks=True)
    (place / RUN / "cache").mkdir()
    (place / TWIN / "cache").symlink_to(place / RUN / "cache")


def _meet(meeting: Meeting, place: Path, drawn: random.Random) -> tuple[list[Ending], str]:
    """Let the commands do some operations in turn, then go to their ends: how each ended, and
    the turns.
    """
    actors = [Actor(meeting.line(number), place) for number in range(len(meeting.commands))]
    order = drawn.sample(range(len(actors)), len(actors))
    turns = []
    for turn in range(drawn.randint(1, TURNS)):
        number, operations = order[turn % len(order)], int(LONGEST_TURN ** drawn.random())
        actors[number].advance(operations)
        turns.append(f"{number}:{operations}")
    if meeting.killed:
        actors[0].kill()
    for number in order:
        actors[number].advance(FREE)  # to its end, or until it waits for another one
    for actor in actors:
        actor.release()
    return [actor.finish() for actor in actors], " ".join(turns)


def _judge(
    meeting: Meeting, endings: list[Ending], histories: Histories, place: Path
) -> tuple[str, str]:
    """The verdict, and what is wrong."""
    survivors = endings[1:] if meeting.killed else endings
    for ending in survivors:
        if ending.code is None:
            return "hung", "it had to be killed"
        if ending.code != 0 and not (ending.clear and ending.code in REFUSED):
            return "unclear", f"exit code {ending.code}"
    if all(ending.code for ending in endings) and not meeting.killed:
        return "stalled", "each was refused"
    if meeting.killed and (first := meeting.commands[0][0]).answers is None:
        ending = _take_up(first, place)
        if ending.code != 0:
            return "lost", f"{ending.code}: {ending.output}"
    wrong = _find_mixture(meeting, endings, histories, place)
    if wrong:
        return "mixed", wrong
    for run in sorted({command.run for command, _ in meeting.commands}):
        found = run_command(["verify", "--run", run], place)
        if found.code != 0 or list_leftovers(place / run):
            return "damaged", f"{run}: {list_leftovers(place / run)}\n{found.code}: {found.output}"
    if any(ending.code for ending in survivors):
        return "refused", ""
    return "resumed" if meeting.killed else "all done", ""


def _take_up(command: Command, place: Path) -> Ending:
    """Do what a person does after a kill: resume, or begin afresh where there is nothing to
    resume.
    """
    if command in EDITS:
        return run_command(command.line(), place)
    resumed = run_command(command.line("--resume"), place)
    return resumed if resumed.code == 0 else run_command(command.line("--force"), place)


def _find_mixture(
    meeting: Meeting, endings: list[Ending], histories: Histories, place: Path
) -> str:
    """What of the runs and of the answers belongs to no order of whole commands; empty if all
    do.
    """
    done = [
        command
        for number, (command, _) in enumerate(meeting.commands)
        if endings[number].code == 0 or (meeting.killed and number == 0)
    ]
    for run in sorted({command.run for command, _ in meeting.commands}):
        writers = tuple(
            replace(command, run=RUN)
            for command in done
            if command.run == run and not command.answers
        )
        found, wanted = list_run(place / run), list(histories.orders(meeting.start, writers))
        if not any(found == state.files for state in wanted):
            return f"{run} differs from every order:\n" + "\n".join(
                _differences(found, state) for state in wanted
            )
    states = list(_states_on_the_way(meeting, histories))
    for number, (command, _) in enumerate(meeting.commands):
        if command.answers and endings[number].code == 0:
            found_answer = read_answer(command, endings[number], place)
            if found_answer not in {state.answer(command) for state in states}:
                return f"{command.name} answers from no run that there was: {found_answer}"
    return ""


def _states_on_the_way(meeting: Meeting, histories: Histories) -> Iterator[State]:
    """Every run that there may have been from the start to the end."""
    writers = [command for command, _ in meeting.commands if not command.answers]
    for count in range(len(writers) + 1):
        for chosen in combinations(writers, count):
            yield from histories.orders(meeting.start, chosen)


def _differences(found: frozenset[tuple[str, str]], state: State) -> str:
    missing, beside = sorted(state.files - found), sorted(found - state.files)
    return f"  missing {missing}\n  beside {beside}"


def _same(drawn: random.Random) -> Meeting:
    """One stage twice, with the same or other options: to be made, or to be replaced."""
    number = drawn.randrange(len(STAGES))
    pair = tuple(stage(STAGES[number], other=drawn.random() < 0.5) for _ in range(2))
    forces = drawn.random() < 0.5
    start = BASE[: drawn.choice((number, number + 1, len(BASE)))] if forces else BASE[:number]
    return Meeting(start, tuple((command, forces) for command in pair))


def _different(drawn: random.Random) -> Meeting:
    """Two stages, one of which may read what the other replaces."""
    names = drawn.sample(STAGES, 2)
    return Meeting(BASE, tuple((stage(name, other=drawn.random() < 0.7), True) for name in names))


def _read(drawn: random.Random) -> Meeting:
    """A command that reads while another one replaces what it reads."""
    reader = drawn.choice(READERS)
    names = {"show": ("mig",), "suggest": ("finetune", "mig"), "export": ("finetune",)}.get(
        reader.name, STAGES
    )
    return Meeting(BASE, ((stage(drawn.choice(names), other=True), True), (reader, False)))


def _create(drawn: random.Random) -> Meeting:
    """Two or three commands that all make the run."""
    choices = (stage("mig"), stage("mig", other=True), OTHER_CORPUS)
    return Meeting(
        (), tuple((drawn.choice(choices), False) for _ in range(drawn.choice((2, 2, 3))))
    )


def _cache(drawn: random.Random) -> Meeting:
    """Two runs that share one cache of hidden states, and fill it at once."""
    return Meeting(
        BASE[:1],
        tuple(
            (stage("pretrain-attn", other=drawn.random() < 0.5, run=run), False)
            for run in (RUN, TWIN)
        ),
        killed=drawn.random() < 0.3,
    )


def _kill(drawn: random.Random) -> Meeting:
    """One of two commands is killed; the other one waits for it, or comes in between."""
    first = stage(drawn.choice(STAGES), other=drawn.random() < 0.5)
    second = drawn.choice((*EDITS, stage(drawn.choice(STAGES), other=drawn.random() < 0.5)))
    return Meeting(BASE, ((first, True), (second, True)), killed=True)


def _edit(drawn: random.Random) -> Meeting:
    """Edits at once, perhaps while the relevance is made anew; each waits for the others."""
    edits = tuple((edit, False) for edit in drawn.sample(EDITS, drawn.choice((2, 3))))
    if drawn.random() < 0.5:
        return Meeting(BASE[:1], edits)
    return Meeting(
        BASE[:1], ((stage("mig", other=True), True), *edits[:1]), killed=drawn.random() < 0.5
    )


KINDS: dict[str, Callable[[random.Random], Meeting]] = {
    "same": _same,
    "different": _different,
    "read": _read,
    "create": _create,
    "cache": _cache,
    "kill": _kill,
    "edit": _edit,
}
