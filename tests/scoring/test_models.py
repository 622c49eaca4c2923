"""A network opened from Python suggests what `plant suggest` does, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import ArtefactError
from plant_cli.scoring.opened_models import open_model

TEXTS = ["a cough and a fever", "pain in the left leg", ""]


@pytest.fixture
def trained(clinic: Any) -> Any:
    for stage in ("mig", "pretrain-attn", "finetune"):
        clinic(stage)
    return clinic


def test_it_suggests_what_the_command_suggests(trained: Any, tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("doc_id,text\n" + "".join(f"{row},{text}\n" for row, text in enumerate(TEXTS)))
    before = {path: path.stat().st_mtime_ns for path in trained.path.rglob("*")}
    found = open_model(str(trained.path)).suggest(TEXTS, k=3)
    table = trained("suggest", flags={"suggest": {"path": str(texts), "top_k": 3}}).tables[0]
    assert [[str(row), s.label, s.title, "yes" if s.assigned else "no"] for row, text in enumerate(found) for s in text] == [
        [document, label, title, assigned] for document, label, title, _, _, assigned in table.rows
    ]
    assert [(s.score, s.threshold) for text in found for s in text] == [pytest.approx(row[3:5], rel=5e-3) for row in table.rows]
    assert {path: path.stat().st_mtime_ns for path in trained.path.rglob("*")} == before


def test_a_tag_and_values_of_the_call_count(trained: Any) -> None:
    trained("finetune", tag="other", flags={"finetune": {"init": "random"}})
    plain, other = (open_model(trained.path, tag, sets=["machine.precision=bf16"]) for tag in (None, "other"))
    assert str(plain.model.hardware.dtype) == "torch.bfloat16"
    assert plain.suggest(TEXTS[:1]) != other.suggest(TEXTS[:1])
    assert len(plain.suggest(TEXTS[:1], k=1000)[0]) == len(plain.labels)
    assert plain.suggest([]) == []


def test_what_is_missing_is_named(clinic: Any, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no run"):
        open_model(tmp_path / "nowhere")
    clinic("mig")
    with pytest.raises(ArtefactError, match="the stage 'finetune' has not run"):
        open_model(clinic.path)
