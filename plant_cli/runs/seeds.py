"""Several seeds in one run: the stages of the first have no mark, those of each other one end their tag with `seedN`."""

from __future__ import annotations

import re

from plant_cli.runs.folder import Run

_MARKED = re.compile(r"(?:(?P<tag>.+)-)?seed(?P<seed>\d+)")


def mark_seed(tag: str | None, seed: int) -> str:
    """The tag of a stage's repetition: `baseline` and 2 make `baseline-seed2`, no tag makes `seed2`."""
    return f"seed{seed}" if tag is None else f"{tag}-seed{seed}"


def split_seed(tag: str | None) -> tuple[str | None, int | None]:
    """A tag without its mark, and the seed that the mark names; None for a tag without one."""
    found = _MARKED.fullmatch(tag or "")
    return (found["tag"], int(found["seed"])) if found else (tag, None)


def find_input_tag(run: Run, stage: str, tag: str | None, reader: str | None) -> str | None:
    """The tag under which a stage finds its input: that of its own seed if the run has one, else as asked.

    What does not depend on the seed, such as `mig`, is thus shared by all seeds.

    Args:
        run: the run.
        stage: the input's stage.
        tag: its tag, as the reading stage asks for it.
        reader: the tag of the reading stage.
    """
    seed = split_seed(reader)[1]
    if seed is None or split_seed(tag)[1] is not None:
        return tag
    own = mark_seed(tag, seed)
    return tag if run.stage(stage, own).record() is None else own
