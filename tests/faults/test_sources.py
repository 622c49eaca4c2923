"""Nothing in the sources loads what could carry code, starts a shell, or reaches for the
network: each import and call is looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("plant_cli", "plugins") for path in (ROOT / folder).rglob("*.py")
)
CODE = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "runpy",
    "zipimport",
    "code",
}
NETWORK = {
    "ftplib",
    "telnetlib",
    "xmlrpc",
    "urllib",
    "urllib3",
    "requests",
    "http",
    "httpx",
    "aiohttp",
    "asyncio",
}
MODULES = CODE | NETWORK | {"tarfile"}
HARMLESS = {"urllib.parse"}  # takes addresses apart, and opens none
SERVER = ROOT / "plugins" / "plant_serving"  # the room that is there to be asked over the network
SERVES = {"imports asyncio", "calls socket.socket"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
}
CALLS |= {
    "importlib.util.spec_from_file_location",
    "shutil.unpack_archive",
    "tempfile.mktemp",
    "socket.socket",
    "socket.create_connection",
}
CALLS |= {"torch.jit.load", "torch.hub.load", "torch.package.PackageImporter", "pandas.read_pickle"}
CALLS |= {
    "yaml.unsafe_load",
    "yaml.unsafe_load_all",
    "yaml.full_load",
    "yaml.full_load_all",
    "yaml.load_all",
}
LOADERS = {"BaseLoader", "SafeLoader", "CSafeLoader", "CBaseLoader"}


def find_unsafe(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and reason of everything in a module that could run what a file says."""
    known = dict(_imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            yield from (
                (node.lineno, f"imports {name}")
                for name in names
                if name.split(".")[0] in MODULES and name not in HARMLESS
            )
        if isinstance(node, ast.Call):
            yield from ((node.lineno, reason) for reason in judge_call(node, known))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What each imported name stands for: `t`, `torch` after `import torch as t`; `load`,
    `yaml.load` after `from yaml import load`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names
            )


def judge_call(call: ast.Call, known: Mapping[str, str]) -> Iterator[str]:
    """Why a call is unsafe, if it is, when imported names stand for what is `known`."""
    first, dot, rest = ast.unparse(call.func).partition(".")
    name = f"{known.get(first, first)}{dot}{rest}".removeprefix("builtins.")
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    last = name.split(".")[-1]
    if name in CALLS:
        yield f"calls {name}"
    if name == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if name == "yaml.load" and given.get("Loader", "").split(".")[-1] not in LOADERS:
        yield "yaml.load without a safe loader"
    if last in ("load", "fromfile", "loadtxt") and given.get("allow_pickle", "False") != "False":
        yield "allow_pickle"
    if "pickle_module" in given:
        yield "pickle_module"
    if given.get("shell", "False") != "False":
        yield "a shell"
    if last == "extractall":
        yield "extractall writes where an archive says"
    if given.get("trust_remote_code") == "True":
        yield "trust_remote_code without being asked"


def test_sources_run_nothing_that_a_file_brings() -> None:
    assert len(SOURCES) > 200
    found = [
        f"{path.relative_to(ROOT)}:{line} {reason}"
        for path in SOURCES
        for line, reason in find_unsafe(ast.parse(path.read_text("utf-8")))
        if not (path.is_relative_to(SERVER) and reason in SERVES)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import pickle", "imports pickle"),
        ("import os, runpy", "imports runpy"),
        ("from joblib import load", "imports joblib"),
        ("import urllib.request as web", "imports urllib.request"),
        ("from http.client import HTTPConnection", "imports http.client"),
        ("eval(text)", "calls eval"),
        ("import builtins\nbuiltins.exec(text)", "calls exec"),
        ("from os import system\nsystem(line)", "calls os.system"),
        ("import subprocess as s\ns.getoutput(line)", "calls subprocess.getoutput"),
        ("import socket\nsocket.create_connection(place)", "calls socket.create_connection"),
        (
            "from importlib.util import spec_from_file_location as find\nfind(name, path)",
            "calls importlib.util.spec_from_file_location",
        ),
        ("shutil.unpack_archive(path)", "calls shutil.unpack_archive"),
        ("import pandas as pd\npd.read_pickle(path)", "calls pandas.read_pickle"),
        ("from torch import jit\njit.load(path)", "calls torch.jit.load"),
        ("from torch import hub as h\nh.load(name)", "calls torch.hub.load"),
        ("torch.load(path)", "torch.load without weights_only=True"),
        ("torch.load(path, weights_only=False)", "torch.load without weights_only=True"),
        ("import torch as t\nt.load(path)", "torch.load without weights_only=True"),
        ("from torch import load\nload(path)", "torch.load without weights_only=True"),
        ("torch.load(path, weights_only=True, pickle_module=mine)", "pickle_module"),
        ("yaml.load(text)", "yaml.load without a safe loader"),
        ("yaml.load(text, Loader=yaml.Loader)", "yaml.load without a safe loader"),
        ("from yaml import load as read\nread(text)", "yaml.load without a safe loader"),
        ("yaml.unsafe_load_all(text)", "calls yaml.unsafe_load_all"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("subprocess.run(line, shell=True)", "a shell"),
        ("archive.extractall(folder)", "extractall writes where an archive says"),
        (
            "AutoModel.from_pretrained(name, trust_remote_code=True)",
            "trust_remote_code without being asked",
        ),
    ],
)
def test_the_check_finds_what_it_looks_for(code: str, reason: str) -> None:
    assert [found for _, found in find_unsafe(ast.parse(code))] == [reason]


@pytest.mark.parametrize(
    "code",
    [
        "model.eval()",
        "torch.load(path, weights_only=True)",
        "from torch import load\nload(path, weights_only=True)",
        "yaml.load(text, Loader=yaml.BaseLoader)",
        "re.compile('a')",
        "import socket\nsocket.gethostname()",
        "from json import load\nload(stream)",
    ],
)
def test_the_check_passes_what_is_safe(code: str) -> None:
    assert list(find_unsafe(ast.parse(code))) == []
