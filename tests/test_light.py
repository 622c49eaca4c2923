"""A user's day on an installation without the packages that only networks need."""

from __future__ import annotations

import csv
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from plant_cli.api.network_packages import NETWORK_PACKAGES

ROOT = Path(__file__).parents[1]
CATALOGUE, INSTALLING = ROOT / "docs/examples/catalogue.py", ROOT / "docs/operating.md"
LOCK = "requirements-light.lock"
MARK = "left: "
COLUMNS = "--text-column title,abstract --labels-column subjects"
DAY = f"""\
data check catalogue.csv {COLUMNS}
doctor
train catalogue.csv
suggest new.csv -O suggestions.csv
suggest --text honey --why
suggest new.csv --sheet review.csv
review import review.csv --texts new.csv --undecided keep -O accepted.csv
explain --text honey
audit -O doubts.csv
eval
mig
mig show Beekeeping
thresholds --target f1 --measure test
significance finetune plant-run/predict/parts/words.parquet
report
labels diff plant-run edition.csv -O edits.csv
labels apply plant-run edits.csv --run edited
export exported
suggest --run exported --text honey
explain --run exported --text honey
plugins
"""
REFUSED = f"""\
train catalogue.csv --hours 1 --run other
data check catalogue.csv {COLUMNS} --backbone tiny
mig catalogue.csv {COLUMNS} --run other
plan --run other
pretrain-attn --run other
"""
WITHOUT = f"""
import sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {(*NETWORK_PACKAGES, "bitsandbytes")!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent)
"""
SPEND = f"""
import json
from plant_cli.main import main
for line in sys.stdin:
    print(line, end="", file=sys.stderr)
    sys.argv = ["plant", *line.split()]
    try:
        main()
    except SystemExit as left:
        print({MARK!r} + json.dumps([line.strip(), left.code or 0]))
"""
CHECK = """
import pytest
sys.exit(pytest.main(["--pyargs", "plant_cli.testing", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def _spend(folder: Path, commands: str) -> tuple[dict[str, int], str]:
    """The exit code of each command, run in turn without the packages, and what they said."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + SPEND],
        input=commands,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    return dict(json.loads(line.removeprefix(MARK)) for line in lines), done.stdout + done.stderr


def _spend_installed(plant: Path, folder: Path, commands: str) -> tuple[dict[str, int], str]:
    """The same by the command of an installation."""
    codes, said = {}, ""
    for line in commands.splitlines():
        done = subprocess.run(
            [plant, *line.split()], cwd=folder, capture_output=True, text=True, check=False
        )
        codes[line] = done.returncode
        said += f"{line}\n{done.stdout}{done.stderr}"
    return codes, said


def write_desk(folder: Path) -> None:
    """Make a folder with a catalogue, new records, and new titles for its subjects."""
    folder.mkdir()
    made = runpy.run_path(str(CATALOGUE))
    made["write"](str(folder / "catalogue.csv"), 300, 0, labelled=True)
    made["write"](str(folder / "new.csv"), 10, 1, labelled=False)
    with (folder / "edition.csv").open("w", newline="") as file:
        rows = [(name, name.upper()) for name in made["SUBJECTS"]]
        csv.writer(file).writerows([("label", "title"), *rows])


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """The folder of `write_desk`."""
    folder = tmp_path / "desk"
    write_desk(folder)
    return folder


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command `plant` of a light installation, made as the docs say."""
    place = tmp_path_factory.mktemp("light")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    command = next(
        line for line in INSTALLING.read_text("utf-8").splitlines() if LOCK in line
    ).replace("pip install", f"{place}/bin/python -m pip install --quiet")
    index = [place / "bin/python", "-m", "pip", "download", "--no-deps", "--no-cache-dir"]
    asked = subprocess.run(
        [*index, "--dest", place / "asked", "pluggy"], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        pytest.skip(f"no package index can be reached: {asked.stderr.strip().splitlines()[-1]}")
    done = subprocess.run(
        ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return place / "bin" / "plant"


def _require_whole_day(codes: Mapping[str, int], said: str) -> None:
    assert codes == dict.fromkeys(DAY.splitlines(), 0), said
    assert "torch, transformers, tokenizers, accelerate, peft not installed" in said  # by doctor


def _require_advice(codes: Mapping[str, int], said: str) -> None:
    assert [*codes.values()] == [5, 5, 0, 5, 5], said
    assert said.count("this needs packages that a light installation leaves out: torch") == 4
    assert said.count("`pip install plant-cli` installs them") == 4


def test_all_but_networks_works(desk: Path) -> None:
    _require_whole_day(*_spend(desk, DAY))


def test_what_needs_a_network_says_what_installs_it(desk: Path) -> None:
    _require_advice(*_spend(desk, REFUSED))


@pytest.mark.slow
def test_a_light_installation_is_enough(plant: Path, desk: Path) -> None:
    _require_whole_day(*_spend_installed(plant, desk, DAY))
    _require_advice(*_spend_installed(plant, desk, REFUSED))
    look = "import importlib.util as u, sys; sys.exit(any(map(u.find_spec, sys.argv[1:])))"
    subprocess.run([plant.with_name("python"), "-c", look, *NETWORK_PACKAGES], check=True)
    open_it = "from plant_cli import load; assert load('exported').suggest(['honey'])[0]"
    subprocess.run([plant.with_name("python"), "-c", open_it], cwd=desk, check=True)
    server = subprocess.Popen(
        [plant, "serve", "exported", "--port", "0"], cwd=desk, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        found = re.match(r"(http://127.0.0.1:\d+) ", server.stderr.readline())
        assert found is not None
        request = Request(
            f"{found[1]}/api/suggest", b'{"text": "honey"}', {"content-type": "application/json"}
        )
        with urlopen(request) as answer:
            assert b"Beekeeping" in answer.read()
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.parametrize(("plugin", "code"), [("scorers", 0), ("metrics", 0), ("losses", 1)])
def test_checks_of_what_needs_no_network_run(plugin: str, code: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + CHECK, "--plant-plugin", plugin],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("`pip install plant-cli` installs them" in done.stdout) == (code == 1)
