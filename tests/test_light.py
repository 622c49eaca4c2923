"""A user's day on an installation without the packages that only networks need."""

from __future__ import annotations

import csv
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from plant_cli.api.network_packages import NETWORK_PACKAGES

CATALOGUE = Path(__file__).parents[1] / "docs" / "examples" / "catalogue.py"
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
WITHOUT = f"""
import json, sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {(*NETWORK_PACKAGES, "bitsandbytes")!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent)
from plant_cli.main import main
for line in sys.stdin:
    print(line, end="", file=sys.stderr)
    sys.argv = ["plant", *line.split()]
    try:
        main()
    except SystemExit as left:
        print({MARK!r} + json.dumps([line.strip(), left.code or 0]))
"""


def _spend(folder: Path, commands: str) -> tuple[dict[str, int], str]:
    """The exit code of each command, run in turn without the packages, and what they said."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        input=commands,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    return dict(json.loads(line.removeprefix(MARK)) for line in lines), done.stdout + done.stderr


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalogue, new records, and new titles for its subjects."""
    folder = tmp_path_factory.mktemp("desk")
    made = runpy.run_path(str(CATALOGUE))
    made["write"](str(folder / "catalogue.csv"), 300, 0, labelled=True)
    made["write"](str(folder / "new.csv"), 10, 1, labelled=False)
    with (folder / "edition.csv").open("w", newline="") as file:
        rows = [(name, name.upper()) for name in made["SUBJECTS"]]
        csv.writer(file).writerows([("label", "title"), *rows])
    return folder


def test_all_but_networks_works(desk: Path) -> None:
    codes, said = _spend(desk, DAY)
    assert codes == dict.fromkeys(DAY.splitlines(), 0), said
    assert "torch, transformers, tokenizers, accelerate, peft not installed" in said  # by doctor


def test_what_needs_a_network_says_what_installs_it(desk: Path) -> None:
    refused = (
        "train catalogue.csv --hours 1 --run other",
        f"data check catalogue.csv {COLUMNS} --backbone tiny",
        "plan --run other",
        "pretrain-attn --run other",
    )
    codes, said = _spend(
        desk, "\n".join((*refused[:2], f"mig catalogue.csv {COLUMNS} --run other", *refused[2:]))
    )
    assert [*codes.values()] == [5, 5, 0, 5, 5], said
    assert said.count("a network needs packages that are not installed: torch") == 4
    assert said.count("`pip install plant-cli` installs them") == 4
