"""Mistakes in predictions, lists of labels, tables of parents, requirements and targets:
`messages.yaml` has each with its four parts.
"""

from pathlib import Path

import pytest
from builders import explained, read_cases

from plant_cli.evaluation.aligned import read_predictions
from plant_cli.evaluation.foreign import Numbering, read_numbering
from plant_cli.evaluation.gold import read_hierarchy
from plant_cli.evaluation.results import parse_gates
from plant_cli.evaluation.targets import parse_targets

CASES = read_cases(Path(__file__).parent / "messages.yaml")
ROWS = '{"doc_id": "2", "labels": [], "scores": []}\n{"doc_id": "3", "labels": [], "scores": []}\n'
ROWS += '{"doc_id": "4", "labels": [], "scores": []}\n{"doc_id": "5", "labels": [], "scores": []}\n'


def make_mistake(case, gold):
    [(name, content)] = case["file"].items() if "file" in case else [("", "")]
    if name:
        Path(name).write_text(content.replace("ROWS", ROWS), "utf-8")
    if "gate" in case:
        parse_gates([case["gate"]])
    elif "targets" in case:
        parse_targets(case["targets"])
    elif name.startswith("parents"):
        read_hierarchy(Path(name), ["a"])
    elif name == "pairs.txt":
        read_numbering(None, name)
    else:
        read_predictions(Path(name), gold, numbering=Numbering(labels=case.get("labels", ())))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"][0])
def test_a_mistake_is_explained(case, gold, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with explained(case, tmp_path):
        make_mistake(case, gold)
