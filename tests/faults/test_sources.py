"""Nothing in the sources loads what could carry code, starts a shell, or reaches for the network: each call is looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("plant_cli", "plugins") for path in (ROOT / folder).rglob("*.py"))
MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "tarfile", "ftplib", "telnetlib", "xmlrpc"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
    "yaml.unsafe_load",
    "yaml.full_load",
    "yaml.load_all",
}
LOADERS = {"BaseLoader", "SafeLoader", "CSafeLoader", "CBaseLoader"}


def find_unsafe(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and reason of everything in a module that could run what a file says."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, f"imports {name}") for name in names if name.split(".")[0] in MODULES)
        if isinstance(node, ast.Call):
            yield from ((node.lineno, reason) for reason in judge_call(node))


def judge_call(call: ast.Call) -> Iterator[str]:
    """Why a call is unsafe; nothing if it is not."""
    name, given = ast.unparse(call.func), {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    last = name.split(".")[-1]
    if name in CALLS:
        yield f"calls {name}"
    if name == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if name == "yaml.load" and given.get("Loader", "").split(".")[-1] not in LOADERS:
        yield "yaml.load without a safe loader"
    if last in ("load", "fromfile", "loadtxt") and given.get("allow_pickle", "False") != "False":
        yield "allow_pickle"
    if given.get("shell", "False") != "False":
        yield "a shell"
    if last == "extractall":
        yield "extractall writes where an archive says"
    if given.get("trust_remote_code") == "True":
        yield "trust_remote_code without being asked"


def test_sources_run_nothing_that_a_file_brings() -> None:
    assert len(SOURCES) > 200
    found = [
        f"{path.relative_to(ROOT)}:{line} {reason}" for path in SOURCES for line, reason in find_unsafe(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import pickle", "imports pickle"),
        ("from joblib import load", "imports joblib"),
        ("eval(text)", "calls eval"),
        ("torch.load(path)", "torch.load without weights_only=True"),
        ("torch.load(path, weights_only=False)", "torch.load without weights_only=True"),
        ("yaml.load(text)", "yaml.load without a safe loader"),
        ("yaml.load(text, Loader=yaml.Loader)", "yaml.load without a safe loader"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("subprocess.run(line, shell=True)", "a shell"),
        ("archive.extractall(folder)", "extractall writes where an archive says"),
        ("AutoModel.from_pretrained(name, trust_remote_code=True)", "trust_remote_code without being asked"),
    ],
)
def test_the_check_finds_what_it_looks_for(code: str, reason: str) -> None:
    assert [found for _, found in find_unsafe(ast.parse(code))] == [reason]


@pytest.mark.parametrize(
    "code", ["model.eval()", "torch.load(path, weights_only=True)", "yaml.load(text, Loader=yaml.BaseLoader)", "re.compile('a')"]
)
def test_the_check_passes_what_is_safe(code: str) -> None:
    assert list(find_unsafe(ast.parse(code))) == []
