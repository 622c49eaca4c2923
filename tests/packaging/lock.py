"""Lock every dependency by version and hash: `python -m tests.packaging.lock` asks the configured
index and writes all files anew, or those that are named.

`requirements.lock` is for any system; on Linux it holds the CUDA build of torch.
`requirements-cpu.lock` is for Linux on x86-64 without a GPU; the CPU build of torch comes from
where pip finds it (https://download.pytorch.org/whl/cpu, or a folder of `PIP_FIND_LINKS`).
`requirements-light.lock` is for any system and leaves out what only networks need.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plant_cli.api.network_packages import NETWORK_PACKAGES

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Lock:
    """What a lock holds: the dependencies of plant and of some of its extras."""

    extras: tuple[str, ...]
    options: tuple[str, ...]  # of uv
    without: tuple[str, ...] = ()  # packages that are left out, and what only they need


LOCKS: Mapping[str, Lock] = {
    "requirements.lock": Lock(("minilm", "test"), ("--universal",)),
    "requirements-cpu.lock": Lock(
        ("minilm", "test"), ("--python-platform", "x86_64-manylinux_2_28")
    ),
    "requirements-light.lock": Lock(
        ("office", "report", "serve"),
        ("--universal", "-c", "requirements.lock"),
        (*NETWORK_PACKAGES, "bitsandbytes"),
    ),
}
HEAD = (
    "# Written by `python -m tests.packaging.lock`; install with `pip install "
    "--require-hashes -r {name}`, then `pip install --no-deps .`\n"
)
_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+?))?(?P<hashes>(?: *\\\n +--hash=sha256:[0-9a-f]{64})+)\n"
)


@dataclass(frozen=True)
class Pinned:
    """A dependency of a lock: its version, the condition under which it is installed, and the
    hashes of its files.
    """

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]


def read_lock(name: str) -> Iterator[Pinned]:
    """The dependencies of a lock; `ValueError` for a line that is none, so that nothing comes
    in without a hash.
    """
    text = "".join(
        line
        for line in (ROOT / name).read_text("utf-8").splitlines(keepends=True)
        if not line.startswith("#")
    )
    at = 0
    while at < len(text):
        found = _PINNED.match(text, at)
        if found is None:
            raise ValueError(f"{name}: {text[at:].splitlines()[0]}")
        yield Pinned(
            found["name"],
            found["version"],
            found["marker"],
            tuple(re.findall("[0-9a-f]{64}", found["hashes"])),
        )
        at = found.end()


def main(names: Sequence[str]) -> int:
    """Write some locks."""
    for name in names:
        lock = LOCKS[name]
        command = ["uv", "pip", "compile", "pyproject.toml", "-c", "constraints.txt"]
        command += ["--generate-hashes", "--python-version", "3.11", "--no-annotate", "--no-header"]
        command += ["--quiet", "--upgrade", "--excludes", "-", *lock.options]
        command += [word for extra in lock.extras for word in ("--extra", extra)]
        if "--universal" not in lock.options:
            places = os.environ.get("PIP_FIND_LINKS", "").split()
            command += [word for place in places for word in ("--find-links", place)]
        excluded = "\n".join(lock.without)
        done = subprocess.run(
            command, cwd=ROOT, input=excluded, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        kept = "".join(
            line
            for line in done.stdout.splitlines(keepends=True)
            if not line.startswith(("--find-links", "\n"))
        )
        (ROOT / name).write_text(HEAD.format(name=name) + kept, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*LOCKS]))
