"""Give malformed inputs to the command that reads them: `python -m tests.faults.malformed [--write]
[NAME…]` compares with golden.json.

`golden.json` holds for each input its exit code and what was said: the four parts of the error, or
the warnings where it was accepted.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Container, Iterator
from pathlib import Path

from plant_cli.data.files import remove
from tests.faults.processes import Ending, preload, run_command

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
READERS = {
    "corpora": "mig {} --run run",
    "titles": "mig good.csv --titles {} --run run",
    "evidence": "mig good.csv --evidence {} --run run",
    "vocabularies": "mig good.csv --vocabulary {} --run run",
    "recipes": "mig --recipe {} --run run",
    "predictions": "eval good.csv --predictions {} --run run",
}
CHECKED = ("recipes",)  # read by `plant recipe check` first, which sees all sections


def list_commands() -> Iterator[tuple[str, list[list[str]]]]:
    """The name of each input, and the command lines that read it, in order, until one refuses
    it.
    """
    for kind, line in READERS.items():
        for path in sorted((HERE / "inputs" / kind).iterdir()):
            name = f"{kind}/{path.name}"
            check = [["recipe", "check", name]] if kind in CHECKED else []
            yield name, [*check, [name if word == "{}" else word for word in shlex.split(line)]]
    for line in (HERE / "inputs" / "lines.txt").read_text("utf-8").splitlines():
        yield line, [shlex.split(line)]


def describe(ending: Ending, place: str) -> dict[str, object]:
    """What is compared: the exit code and the lines of errors and warnings, without the names
    of temporary files.
    """
    parts = ("error:", "  where:", "  expected:", "  what to do:")
    wanted = parts if ending.code else ("warning:",)
    kept = [
        line for line in ending.output.replace(place, "").splitlines() if line.startswith(wanted)
    ]
    return {"code": ending.code, "said": kept, "clear": ending.code == 0 or ending.clear}


def read_all(names: Container[str]) -> dict[str, dict[str, object]]:
    """Run the commands of these inputs in a copy of all; each finds no run."""
    preload()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(shutil.copytree(HERE / "inputs", Path(folder) / "inputs"))
        given = set(place.iterdir())
        for name, lines in list_commands():
            if name not in names:
                continue
            for line in lines:
                ending = run_command(line, place)
                if ending.code != 0:
                    break
            found[name] = describe(ending, folder)
            for path in set(place.iterdir()) - given:
                remove(path)
    return found


def main() -> int:
    """Compare with what was recorded, or record it anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="record what is said now")
    parser.add_argument("names", nargs="*", help="only these inputs, such as corpora/cut.csv")
    given = parser.parse_args()
    recorded = json.loads(GOLDEN.read_text("utf-8"))
    names = set(given.names) or recorded.keys() | {name for name, _ in list_commands()}
    found = read_all(names)
    if given.write:
        recorded = {
            name: said
            for name, said in {**recorded, **found}.items()
            if name in dict(list_commands())
        }
        GOLDEN.write_text(
            json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
            encoding="utf-8",
        )
    differing = sorted(name for name in names if found.get(name) != recorded.get(name))
    unclear = sorted(name for name, said in found.items() if not said["clear"])
    print(
        json.dumps(
            {name: [recorded.get(name), found.get(name)] for name in differing},
            indent=1,
            ensure_ascii=False,
        )
    )
    print(
        f"{len(found)} inputs; {len(differing)} differ from the record; not refused clearly: "
        f"{', '.join(unclear) or 'none'}"
    )
    return int(bool(differing or unclear))


if __name__ == "__main__":
    sys.exit(main())
