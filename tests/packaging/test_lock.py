"""The locks hold every dependency by version and hash, within the bounds of pyproject.toml and
constraints.txt.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plant_cli.api.network_packages import NETWORK_PACKAGES
from tests.packaging.lock import LOCKS, Lock, read_lock

ROOT = Path(__file__).parents[2]


def asked(lock: Lock) -> Iterator[Requirement]:
    """What pyproject.toml and constraints.txt ask for, and the lock is to hold."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines: list[str] = [
        *project["dependencies"],
        *(line for extra in lock.extras for line in project["optional-dependencies"][extra]),
    ]
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    lines += [line for line in constraints if line and not line.startswith("#")]
    return (one for one in map(Requirement, lines) if one.name not in lock.without)


@pytest.mark.parametrize("name", LOCKS)
def test_every_dependency_is_locked_within_its_bounds(name: str) -> None:
    locked = {canonicalize_name(one.name): one.version for one in read_lock(name)}
    for wanted in asked(LOCKS[name]):
        version = locked.pop(canonicalize_name(wanted.name), None) or locked_again(name, wanted)
        assert wanted.specifier.contains(version, prereleases=True), wanted
    assert len(locked) > 20  # what these depend on


def locked_again(name: str, wanted: Requirement) -> str:
    """The version of what is asked for twice."""
    return next(
        one.version
        for one in read_lock(name)
        if canonicalize_name(one.name) == canonicalize_name(wanted.name)
    )


@pytest.mark.parametrize("name", LOCKS)
def test_every_file_has_its_hash_and_comes_from_the_index(name: str) -> None:
    pinned = list(read_lock(name))
    assert len({(one.name, one.marker) for one in pinned}) == len(pinned)
    assert all(one.hashes for one in pinned)
    text = (ROOT / name).read_text("utf-8")
    assert "://" not in text
    assert "find-links" not in text


def test_all_locks_hold_the_same_versions() -> None:
    """But for triton, of which torch's CUDA build takes one version only."""
    cpu, light, everywhere = (
        {(one.name, one.version.partition("+")[0]) for one in read_lock(name)}
        for name in sorted(LOCKS)
    )
    assert {name for name, _ in cpu - everywhere} <= {"triton"}
    assert light <= everywhere


def test_the_light_lock_leaves_out_what_only_networks_need() -> None:
    light = {one.name for one in read_lock("requirements-light.lock")}
    of_networks = {"huggingface-hub", "sympy", "networkx", "fsspec", "tqdm", "setuptools"}
    assert not light & {*NETWORK_PACKAGES, "bitsandbytes", *of_networks}
    assert not [name for name in light if name.startswith(("nvidia", "cuda", "triton"))]


def test_a_machine_without_a_gpu_gets_the_small_torch() -> None:
    locked = {one.name: one.version for one in read_lock("requirements-cpu.lock")}
    assert locked["torch"].endswith("+cpu")
    assert not [name for name in locked if name.startswith(("nvidia", "cuda"))]


def test_a_line_without_a_hash_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.packaging.lock.ROOT", tmp_path)
    (tmp_path / "requirements.lock").write_text(
        f"# head\na==1 \\\n    --hash=sha256:{'0' * 64}\nb==2\n"
    )
    with pytest.raises(ValueError, match="b==2"):
        list(read_lock("requirements.lock"))


@pytest.mark.slow
def test_the_bill_of_materials_names_what_is_installed(tmp_path: Path) -> None:
    """CycloneDX of this environment; where `PLANT_ARTEFACTS` names a folder, it is kept there
    as sbom.json.
    """
    folder = Path(os.environ.get("PLANT_ARTEFACTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    sbom = folder / "sbom.json"
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--pyproject",
        "pyproject.toml",
        "--output-reproducible",
    ]
    done = subprocess.run(
        [*command, "-o", str(sbom)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(sbom.read_text("utf-8"))
    assert content["bomFormat"] == "CycloneDX"
    assert content["metadata"]["component"]["name"] == "plant-cli"
    found = {
        canonicalize_name(component["name"]): component["version"]
        for component in content["components"]
    }
    missing = [
        str(wanted)
        for wanted in asked(LOCKS["requirements.lock"])
        if wanted.marker is None and canonicalize_name(wanted.name) not in found
    ]
    assert missing == []
    assert all(re.match(r"\d", version) for version in found.values())
