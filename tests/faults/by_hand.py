"""Faults put in by hand: do the tests notice? `python -m tests.faults.by_hand [--only 3,17] [--jobs
2] [--json results.json]`.

One fault of `by_hand.yaml` at a time is put into a copy of the sources that comes first on
PYTHONPATH. The tests of the nearest importers of its module run, then `tests/golden`. Last, the
tests that failed run without a fault: where one fails there, too, its fault is `unsound`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDERS = ("plant_cli", "plugins")
SECONDS = 120  # for one call of pytest; a second try has twice as many
FILES = 25  # test files of the first call
MODULE = re.compile(r"(plant_\w+\.\w+)((?:\.\w+)?)")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """One fault: `old` occurs once in the sources, however its words are spaced, and `new`
    replaces it.
    """

    name: str
    subject: str
    old: str
    new: str

    def locate(self) -> tuple[Path, str]:
        """The module with the old text, from the root, and the module's text with the fault in
        it.
        """
        escaped = re.sub(r"\\\s", r"\\s+", re.escape(self.old))
        opened = re.sub(r"\\[(\[]", r"\g<0>\\s*", escaped)  # lines may be broken within brackets
        old = re.compile(re.sub(r"\\[)\]]", r",?\\s*\g<0>", opened))
        found = [(path, text) for path, text in read_sources().items() for _ in old.finditer(text)]
        if len(found) != 1:
            raise ValueError(
                f"the old text of '{self.name}' occurs {len(found)} times: "
                f"{[str(path) for path, _ in found]}"
            )
        return found[0][0].relative_to(ROOT), old.sub(lambda _: self.new, found[0][1])


def read_faults() -> list[Fault]:
    """The faults in order; they are numbered from 1."""
    return [
        Fault(**entry)
        for entry in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    ]


@cache
def read_sources() -> dict[Path, str]:
    """The text of every module."""
    return {
        path: path.read_text("utf-8")
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def read_imports(path: Path) -> frozenset[str]:
    """Every name that a file imports or writes as text, such as `plant_cli.runs.lock`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {
                name for first, rest in MODULE.findall(node.value) for name in (first, first + rest)
            }
    return frozenset(names)


def find_tests(module: Path) -> list[str]:
    """The test files that concern a module: by the number of imports between them, those in the
    folder of the same name first.
    """
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    near = {test for test in tests if test.parent.name == module.parent.name}
    distances = {test: 1 if test.stem == f"test_{module.stem}" else 2 for test in near}
    level = {ROOT / module}
    for distance in (1, 2, 3):
        names = {
            str(path.relative_to(ROOT))
            .removeprefix("plugins/")[:-3]
            .removesuffix("/__init__")
            .replace("/", ".")
            for path in level
        }
        distances |= {
            test: min(distance, distances.get(test, distance))
            for test in tests
            if read_imports(test) & names
        }
        level = {path for path in read_sources() if read_imports(path) & names}
    nearest = sorted(
        distances,
        key=lambda test: (
            distances[test],
            test.stem != f"test_{module.stem}",
            test not in near,
            test,
        ),
    )
    return [str(test.relative_to(ROOT)) for test in nearest[:FILES]]


def run_tests(
    tests: Sequence[str], seconds: float, module: Path | None = None, text: str = ""
) -> list[str]:
    """The tests that fail (the first one, where a module has another text), or `timeout`."""
    with tempfile.TemporaryDirectory() as copy, tempfile.TemporaryFile("w+") as output:
        for folder in (*FOLDERS, "recipes"):
            shutil.copytree(ROOT / folder, Path(copy, folder))
        if module is not None:
            Path(copy, module).write_text(text, "utf-8")
        options = (
            f"--maxfail {int(module is not None)} --basetemp {copy}/tmp -o "
            "addopts=--import-mode=importlib"
        )
        command = [
            sys.executable,
            *f"-m pytest -q --tb=no -rfE -p no:cacheprovider {options}".split(),
            "-m",
            "not slow",
        ]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{copy}:{copy}/plugins",
            "PYTHONSAFEPATH": "1",
        }  # the working folder is not first
        process = subprocess.Popen(
            [*command, *tests],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with all that the tests started
            process.wait()
            return ["timeout"]
        output.seek(0)
        return (
            [] if code in (0, 5) else FAILED.findall(output.read()) or [f"pytest ended with {code}"]
        )  # 5: all tests are slow


def try_fault(number: int, seconds: float = SECONDS) -> dict[str, Any]:
    """What becomes of a fault."""
    fault = read_faults()[number - 1]
    module, text = fault.locate()
    failed = run_tests(find_tests(module), seconds, module, text)
    if failed in ([], ["timeout"]):
        failed = run_tests(["tests/golden"], seconds, module, text) or failed
    verdict = "not noticed" if not failed else "timeout" if failed == ["timeout"] else "noticed"
    print(
        f"{number} {fault.subject}: {fault.name}: {verdict} {failed}", file=sys.stderr, flush=True
    )
    return {
        "number": number,
        "name": fault.name,
        "subject": fault.subject,
        "module": str(module),
        "verdict": verdict,
        "tests": failed,
    }


def main() -> None:
    """Try faults, those that run out of time once more alone, and say which ones are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="numbers of faults, separated by commas (default: all)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at a time")
    parser.add_argument(
        "--json", type=Path, default=os.devnull, help="file for what became of each fault"
    )
    arguments = parser.parse_args()
    numbers = list(map(int, filter(None, arguments.only.split(",")))) or range(
        1, len(read_faults()) + 1
    )
    with ThreadPoolExecutor(arguments.jobs) as pool:
        tried = list(pool.map(try_fault, numbers))
    tried = [
        try_fault(one["number"], 2 * SECONDS) if one["verdict"] == "timeout" else one
        for one in tried
    ]
    tests = sorted(
        {
            test.partition("[")[0]
            for one in tried
            for test in one["tests"]
            if test.startswith("tests/")
        }
    )
    broken = set(run_tests(tests, 20 * SECONDS)) if tests else set()
    print("these fail without a fault, too:", *(broken or ["none"]))
    for one in tried:
        one["verdict"] = "unsound" if broken & set(one["tests"]) else one["verdict"]
    print(
        *(
            f"{one['number']} {one['name']}: {one['verdict']}"
            for one in tried
            if one["verdict"] != "noticed"
        ),
        sep="\n",
    )
    for subject in [*dict.fromkeys(one["subject"] for one in tried), "all"]:
        verdicts = [one["verdict"] for one in tried if subject in (one["subject"], "all")]
        print(f"{subject:10} {verdicts.count('noticed'):3} of {len(verdicts):3} noticed")
    arguments.json.write_text(json.dumps(tried, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
