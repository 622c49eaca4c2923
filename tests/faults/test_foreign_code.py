"""A run folder that was passed on cannot make a machine run the code that comes with a model,
whatever its files ask for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from builders import run_at
from transformers import BertConfig

from plant_cli.api import ArtefactError, PlantError
from plant_cli.data.files import hash_file, read_json, write_json

CODE = """
from pathlib import Path
from transformers import BertConfig
Path({place!r}).write_text("foreign code was here")
class EvilConfig(BertConfig):
    model_type = "evil"
"""
ALLOWED = "model.backbone.trust_remote_code=true"
WORDS = ("suggest.text=acute cough",)


@pytest.fixture
def evil(small_model: Callable[..., Path], tmp_path: Path) -> Path:
    """A model whose configuration comes with code; whoever runs it finds the file `ran` beside
    it.
    """
    folder = small_model(BertConfig)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "evil", "auto_map": {"AutoConfig": "evil.EvilConfig"}})
    )
    (folder / "evil.py").write_text(CODE.format(place=str(folder / "ran")))
    return folder


@pytest.fixture
def passed_on(clinic: Any, evil: Path) -> Any:
    """A finished run whose model.json, recipe.yaml and records were changed by whoever passed
    it on.
    """
    for name in ("mig", "pretrain-attn", "finetune"):
        clinic(name, "mig.k=5")
    asked = {"name": "hf-encoder", "model": str(evil), "trust_remote_code": True}
    for stage in ("pretrain-attn", "finetune"):
        folder = clinic.path / stage
        write_json(
            folder / "model.json",
            {**read_json(folder / "model.json", "the model"), "backbone": asked},
        )
        record = read_json(folder / "stage.json", "the record")
        record["outputs"]["model.json"], record["facts"] = hash_file(folder / "model.json"), {}
        record["sections"]["model"]["backbone"] = asked
        write_json(folder / "stage.json", record)
    recipe = (clinic.path / "recipe.yaml").read_text()
    head, backbone, rest = recipe.partition("  backbone:\n")
    tail = rest[rest.index("  decoder:") :]
    (clinic.path / "recipe.yaml").write_text(
        f"{head}{backbone}    name: hf-encoder\n    model: {evil}\n    trust_remote_code: "
        f"true\n{tail}"
    )
    return clinic


def run_plain(clinic: Any, name: str, *sets: str, **request: Any) -> Any:
    """Run a stage with what the run itself says of its network."""
    return run_at(clinic.path, name, "machine.device=cpu", *sets, **request)


def test_no_command_runs_code_that_only_the_run_folder_asks_for(
    passed_on: Any, evil: Path, tmp_path: Path
) -> None:
    own = clinic_recipe(tmp_path)
    tries: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
        ("predict", (), {}),
        ("suggest", WORDS, {}),
        ("export", (f"export.folder={tmp_path / 'out'}",), {}),
        ("plan", (), {}),
        ("finetune", ("finetune.epochs=1",), {"force": True}),
        (
            "finetune",
            (
                "finetune.init=random",
                "finetune.head=random",
                "finetune.scorers=none",
            ),
            {"force": True},
        ),
        ("pretrain-attn", (), {"force": True}),
        ("predict", (), {"recipe": str(passed_on.path / "recipe.yaml")}),
        ("finetune", (), {"recipe": str(passed_on.path / "recipe.yaml"), "force": True}),
        ("plan", (), {"flags": {"plan": {"recipe": str(passed_on.path / "recipe.yaml")}}}),
        (
            "run",
            (),
            {"flags": {"run": {"recipe": str(passed_on.path / "recipe.yaml")}}, "force": True},
        ),
        ("finetune", (), {"recipe": own, "force": True}),
    ]
    for name, sets, request in tries:
        with pytest.raises(ArtefactError, match="asks for trust_remote_code = True") as caught:
            run_plain(passed_on, name, *sets, **request)
        assert str(evil) in caught.value.where
        assert f"--set {ALLOWED}" in caught.value.todo
        assert not (evil / "ran").exists(), name
    assert (
        passed_on.path / "finetune" / "model.safetensors"
    ).exists()  # refused before anything was replaced


def clinic_recipe(folder: Path) -> str:
    """A recipe of the user's own that allows the code of another model; stage 2 begins with the
    stage 1 that was passed on.
    """
    path = folder / "own.yaml"
    path.write_text(
        "finetune: {epochs: 1}\npredict: {model: {backbone: {name: hf-encoder, model: org/mine, "
        "trust_remote_code: true}}}\n"
    )
    return str(path)


def test_a_stage_that_was_interrupted_by_the_sender_is_not_resumed_with_the_code(
    passed_on: Any, evil: Path
) -> None:
    folder = passed_on.path / "finetune"
    write_json(
        folder / "stage.json",
        {**read_json(folder / "stage.json", "the record"), "status": "interrupted"},
    )
    with pytest.raises(ArtefactError, match="asks for trust_remote_code = True"):
        run_plain(passed_on, "finetune", resume=True)
    assert not (evil / "ran").exists()


def test_the_user_may_allow_it(
    passed_on: Any, evil: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So the code was really within reach above."""
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    with suppress(PlantError):  # its weights are of another network
        run_plain(passed_on, "predict", ALLOWED)
    assert (evil / "ran").exists()
