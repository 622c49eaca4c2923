"""Mistakes in the use of commands: `messages.yaml` has each of them with the four parts that
the user sees.
"""

from pathlib import Path

import pytest
from builders import explained, read_cases

CASES = read_cases(Path(__file__).parent / "messages.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['stage']}: {case['says'][0]}")
def test_a_mistake_is_explained(case, request, tmp_path, monkeypatch):
    """A run is one of `conftest.TRAINED`, `played`, or none; `options` are those of the stage,
    `data` those of the corpus.
    """
    monkeypatch.chdir(tmp_path)
    for name, text in case.get("files", {}).items():
        Path(name).write_text(text)
    stage, tag, options = case["stage"], case.get("tag"), case.get("options", {})
    kind = case.get("run")
    run = request.getfixturevalue({None: "act", "played": "played"}.get(kind, "prepared"))
    with explained(case, tmp_path):
        if kind is None:
            run(stage, data=case.get("data"), **options)
        elif kind == "played":
            run(stage, tag, **options)
        else:
            run(kind)(stage, flags={stage: options}, tag=tag)
