"""Lock every dependency by version and hash: `python -m tests.packaging.lock` asks the configured
index and writes both files anew.

`requirements.lock` is for any system; on Linux it holds the CUDA build of torch.
`requirements-cpu.lock` is for Linux on x86-64 without a GPU; the CPU build of torch comes from
where pip finds it (https://download.pytorch.org/whl/cpu, or a folder of `PIP_FIND_LINKS`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS: Mapping[str, tuple[str, ...]] = {
    "requirements.lock": ("--universal",),
    "requirements-cpu.lock": ("--python-platform", "x86_64-manylinux_2_28"),
}
EXTRAS = ("minilm", "test")
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


def main() -> int:
    """Write both locks."""
    links = [
        word
        for place in os.environ.get("PIP_FIND_LINKS", "").split()
        for word in ("--find-links", place)
    ]
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    for name, system in LOCKS.items():
        command = [
            "uv",
            "pip",
            "compile",
            "pyproject.toml",
            "-c",
            "constraints.txt",
            "--generate-hashes",
            "--python-version",
            "3.11",
        ]
        command += [
            "--no-annotate",
            "--no-header",
            "--quiet",
            "--upgrade",
            *extras,
            *(() if "--universal" in system else links),
        ]
        done = subprocess.run(
            [*command, *system], cwd=ROOT, capture_output=True, text=True, check=False
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
    sys.exit(main())
