"""What a release must pass: `python -m tests.packaging.release [PYTHON ...]`, in a clone whose
tests pass. The wheel and the source archive are built and compared; each interpreter then gets a
bare environment with the light lock and the wheel, on which a user's day is spent (`test_light`).
Without arguments these are the interpreters of `VERSIONS` that are found. Files of the release lie
in `dist/` afterwards.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.test_light import DAY, LOCK, write_desk

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")


def read_versions(root: Path = ROOT) -> dict[str, str]:
    """The version in each place that names one."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    changes = re.search(r"^## (\S+)", (root / "docs/changelog.md").read_text("utf-8"), re.MULTILINE)
    cited = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    return {
        "pyproject.toml": project["version"],
        "docs/changelog.md": changes[1] if changes else "none",
        "CITATION.cff": str(cited["version"]),
    }


def build(folder: Path, tree: Path = ROOT) -> tuple[Path, Path]:
    """The wheel of a tree and its source archive, built into a folder without an index."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def unpack(source: Path, folder: Path) -> Path:
    """The tree in a source archive."""
    shutil.unpack_archive(source, folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


def try_wheel(python: str, wheel: Path, folder: Path) -> list[str]:
    """What failed of a user's day on a bare environment of an interpreter."""
    subprocess.run([python, "-m", "venv", folder / "bare"], check=True)
    install = [folder / "bare/bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--require-hashes", "-r", ROOT / LOCK], check=True)
    subprocess.run([*install, "--no-deps", wheel], check=True)
    desk = folder / "desk"
    write_desk(desk)
    failed = []
    for line in DAY.splitlines():
        command = [folder / "bare/bin/plant", *line.split()]
        done = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(f"plant {line}: exit code {done.returncode}\n{done.stderr}")
    return failed


def find_pythons() -> list[str]:
    """The interpreters of `VERSIONS` that can be started."""
    names = [f"python{version}" for version in VERSIONS]
    return [
        name
        for name in names
        if shutil.which(name)
        and subprocess.run([name, "--version"], capture_output=True, check=False).returncode == 0
    ]


def main(pythons: Sequence[str]) -> None:
    """Build and try everything; exit with what failed."""
    versions = read_versions()
    print("versions:", versions)
    if len({*versions.values()}) > 1:
        sys.exit("the places above name several versions")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        wheel, source = build(ROOT / "dist")
        again, _ = build(place / "again", unpack(source, place / "source"))
        if wheel.read_bytes() != again.read_bytes():
            sys.exit(f"{source.name} gives another wheel than the tree")
        print(f"built: {wheel.name} and {source.name}; the archive gives the same wheel")
        for number, python in enumerate(pythons or find_pythons()):
            failed = try_wheel(python, wheel, place / str(number))
            print(f"{python}: {len(DAY.splitlines()) - len(failed)} commands of a day worked")
            if failed:
                sys.exit("\n".join(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
