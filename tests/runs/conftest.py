from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from builders import make_registry
from pydantic import field_validator

from plant_cli.api import (
    BackboneSpec,
    Choice,
    DatasetSpec,
    DecoderSpec,
    Options,
    Result,
    StageSpec,
    UsageError,
    choice,
    option,
)
from plant_cli.data.records import StageRecord
from plant_cli.registry import Registry
from plant_cli.runs.folder import Run


class FinetuneOptions(Options):
    epochs: int = option(3, "Passes over train.", ge=1)
    rate: float = option(1e-3, "Learning rate.", gt=0)
    note: str = option("none", "Any text.")
    shuffle: bool = option(True, "Whether to shuffle.")
    gate: str | None = option(None, "What must hold.")
    loss: Choice = choice("backbone", "tiny", "Stands for any component.")

    def check_values(self) -> None:
        if self.gate == "":
            raise UsageError(
                "the gate is empty", where="--gate ''", expected="a gate", todo="leave it out"
            )


class ProbeOptions(Options):
    depth: int = option(help="How deep.")


class SampleOptions(Options):
    size: int = option(help="How large, in documents.", ge=1)
    mode: Literal["fast", "exact"] = option("fast", "How.")
    weights: dict[str, float] = option({}, "Weights.")
    tempo: float = option(1.0, "How fast.", was="speed")
    memory: str = option("1GB", "How much, such as 500MB.", pattern=r"^\d+(MB|GB)$")
    names: list[str] = option(["a", "b"], "The names.", argument=True, min_length=2)

    @field_validator("size")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("Size must be even")
        return value


class TinyOptions(Options):
    layers: int = option(2, "Layers.", ge=1)
    width: int = option(64, "Width.", ge=1)


class BigOptions(Options):
    heads: int = option(8, "Heads.", ge=1)


def _nothing(context: object, options: object) -> Result:
    return Result()


SPECS = [
    StageSpec(
        name="finetune",
        summary="Train.",
        options=FinetuneOptions,
        run=_nothing,
        sections=("data", "model", "machine"),
    ),
    StageSpec(name="pretrain-attn", summary="Plant.", run=_nothing, feeds=("finetune",)),
    StageSpec(name="sample", summary="Sample.", options=SampleOptions, run=_nothing),
    StageSpec(name="probe", summary="Probe.", options=ProbeOptions, run=_nothing),
    StageSpec(name="probe show", summary="Show.", run=_nothing, writes=False, sections=("model",)),
    BackboneSpec(name="tiny", summary="Tiny.", options=TinyOptions, load=_nothing),
    BackboneSpec(name="big", summary="Big.", options=BigOptions, load=_nothing),
    BackboneSpec(name="minilm", summary="The default.", load=_nothing),
    DecoderSpec(name="label-attention", summary="The default.", build=_nothing),
    DatasetSpec(name="files", summary="Files.", load=_nothing),
]


@pytest.fixture
def registry() -> Registry:
    return make_registry(*SPECS)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run")


@pytest.fixture
def make_record() -> Callable[..., StageRecord]:
    def make(stage: str = "mig", tag: str | None = None, **values: Any) -> StageRecord:
        defaults: dict[str, Any] = {
            "status": "running",
            "options": {},
            "sections": {},
            "seed": 0,
            "started": "2026-01-01T00:00:00",
        }
        return StageRecord(stage=stage, tag=tag, **{**defaults, **values})

    return make
