"""The installed command: what it imports, how long it takes, and its version."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import plant_cli

HEAVY = (
    "torch",
    "transformers",
    "sklearn",
    "matplotlib",
    "polars",
    "scipy",
    "scipy.stats",
    "rich",
    "numpy",
)
BOUND = 6.0
"""How often more `plant --help` may work than the import of its two libraries; it does 3 to 4
times as much.
"""
PROBE = """
import sys
sys.argv = ["plant", *{arguments!r}]
from plant_cli.main import main
try:
    main()
except SystemExit as left:
    print(left.code or 0, *(m for m in {heavy!r} if m in sys.modules), file=sys.stderr)
"""
WITHOUT_TORCH = """
import sys
from plant_cli.main import main
codes = []
for line in sys.argv[1:]:
    sys.argv = ["plant", *line.split()]
    try:
        main()
    except SystemExit as left:
        codes.append(left.code or 0)
print(*codes, *sorted({"torch", "transformers"} & set(sys.modules)))
"""


def _probe(*arguments: str) -> tuple[str, list[str]]:
    """What a command printed, and from the last line of stderr: exit code, heavy modules."""
    code = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr.splitlines()[-1].split()


def _effort(code: str, cache: Path) -> float:
    """Processor seconds of Python code in a process of its own, whose modules are compiled
    beforehand.
    """
    environment = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env=os.environ | environment,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_is_cheap(tmp_path: Path) -> None:
    assert _probe("--help")[1] == ["0"]
    command = PROBE.format(arguments=("--help",), heavy=())
    ours, libraries = (
        min(_effort(code, tmp_path) for _ in range(3))  # the first one compiles
        for code in (command, "import typer, pydantic")
    )
    assert ours < BOUND * libraries


@pytest.mark.parametrize("stage", ["pretrain-attn", "finetune", "predict", "eval", "suggest"])
def test_what_is_missing_is_said_before_torch_is_loaded(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = ["--text", "a"] if stage == "suggest" else []
    code, *heavy = _probe(stage, "--run", "none", *text)[1]
    assert code != "0"
    assert not {"torch", "scipy.stats"} & set(heavy)


def test_a_model_of_scorers_needs_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the corpus to suggestions for new texts, in one process."""
    monkeypatch.chdir(tmp_path)
    corpus = (
        "--set data.dataset.name=synthetic-clinic --set data.dataset.documents=60 --set "
        "data.dataset.labels=5"
    )
    commands = [f"finetune --no-network {corpus}", "predict", "eval", "suggest --text fever"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *commands],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["0 0 0 0"], done.stderr
    code, *heavy = _probe("suggest", "--text", "fever")[1]
    assert (code, set(heavy)) == ("0", {"numpy", "scipy", "polars", "rich"})


def test_the_contract_imports_no_heavy_library() -> None:
    modules = "plant_cli.api, plant_cli.api.specs, plant_cli.registry"
    code = f"import sys, {modules}; print(*(m for m in {(*HEAVY, 'typer')!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_version() -> None:
    text, (code,) = _probe("--version")
    assert text == f"plant {plant_cli.__version__}\n"
    assert code == "0"


def test_completion_is_offered() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plant_cli", "--help"], capture_output=True, text=True, check=True
    )
    assert "--install-completion" in done.stdout


def test_completion_offers_commands_and_actions() -> None:
    def complete(words: str) -> list[str]:
        environment = {
            **os.environ,
            "_PLANT_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        call = [sys.executable, "-c", "from plant_cli.main import main; main()"]
        return subprocess.run(
            call, capture_output=True, text=True, check=True, env=environment
        ).stdout.split()

    assert complete("plant mi") == ["mig"]
    assert {"make", "stats"} <= set(complete("plant data "))
    assert complete("plant mig --norm label") == ["label-max"]


@pytest.mark.parametrize("triton", [False, True])
def test_the_end_searches_for_cycles_only_where_triton_would_tell_of_leaks(triton: bool) -> None:
    code = (
        "import atexit, gc, sys; from plant_cli.main import main; atexit.register(lambda: "
        "print(gc.get_freeze_count() > 0))\n"
    )
    code += "sys.modules['triton'] = sys\n" * triton + "sys.argv = ['plant', '--version']; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(not triton)
