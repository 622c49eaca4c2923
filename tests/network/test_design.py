"""A design is what a model section names, with all options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import BackboneSpec, BackboneStart, Choice, ComponentError, DecoderSpec, MachineSection, ModelSection, NoOptions, Options
from plant_cli.network.design import Design, find_design
from plant_cli.registry import installed


def test_designs_are_equal_however_few_options_are_named() -> None:
    short = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve)
    whole = find_design(short.section, installed().resolve)
    assert short.section.backbone.name == "tiny"
    assert short.section.backbone.options["hidden"] > 0
    assert whole == short


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ComponentError, match="tinny"):
        find_design(ModelSection(backbone=Choice(name="tinny")), installed().resolve)


class Folder(Options):
    folder: str | None = None


def design(**options: Any) -> Design:
    """A design whose backbone says which folder it was loaded from."""

    def load(given: Folder, machine: MachineSection) -> Any:
        return given.folder

    backbone = BackboneSpec(name="b", summary="B.", options=Folder, load=load, start=BackboneStart(stage="lm", option="folder"))
    decoder = DecoderSpec(name="d", summary="D.", build=lambda given, shape: None)  # type: ignore[arg-type,return-value]
    return Design(section=ModelSection(), backbone=(backbone, Folder(**options)), decoder=(decoder, NoOptions()))


def test_a_backbone_starts_from_the_stage_of_the_run() -> None:
    asked: list[str] = []
    started = design().start_from(lambda stage: asked.append(stage) or Path("run") / stage)  # type: ignore[func-returns-value]
    assert str(started.load_backbone(MachineSection())) == "run/lm"
    assert asked == ["lm"]
    assert started.backbone[1] == Folder()  # the run's own folder is no option: networks of two runs have one description


def test_a_folder_that_the_user_names_comes_first() -> None:
    named = design(folder="mine")
    assert named.start_from(lambda stage: pytest.fail("asked for the stage of the run")) is named
    assert str(named.load_backbone(MachineSection())) == "mine"


def test_other_backbones_ask_for_no_stage() -> None:
    plain = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve)
    assert plain.start_from(lambda stage: pytest.fail("asked for a stage")) is plain
