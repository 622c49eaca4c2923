"""No command begins with an option that is infinite, not a number, or larger than anything can
hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from plant_cli.api import Choice, ComponentError, DecoderSpec, Options, RecipeError
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.api.specs import TABLE
from plant_cli.registry import installed

ODD = (math.inf, -math.inf, math.nan, 10**400)


def numeric_options() -> Iterator[tuple[type[Options], str]]:
    """Every option of every component and section whose type holds a number."""
    models = {
        *SHARED_SECTIONS.values(),
        *(spec.options for kind in TABLE for spec in installed().specs(kind.spec)),
    }
    for model in models:
        for name, info in model.model_fields.items():
            if "float" in str(info.annotation) or "int" in str(info.annotation):
                yield model, name


def test_every_numeric_option_refuses_what_is_no_number() -> None:
    found = list(numeric_options())
    assert len(found) > 60
    taken = [
        (model.__name__, name, value)
        for model, name in found
        for value in ODD
        if accepts(model, name, value)
    ]
    assert taken == []


def accepts(model: type[Options], name: str, value: Any) -> bool:
    many = "list" in str(model.model_fields[name].annotation) or "tuple" in str(
        model.model_fields[name].annotation
    )
    try:
        model.model_validate({name: [value] if many else value})
    except ValidationError as error:
        return not any(problem["loc"][0] == name for problem in error.errors())
    return True


@pytest.mark.parametrize(
    ("stage", "given"),
    [
        ("finetune", "finetune.clip=.inf"),
        ("finetune", "finetune.checkpoint_minutes=1e400"),
        ("finetune", "finetune.rate_backbone=.nan"),
        ("finetune", "machine.seed=18446744073709551616"),
        ("finetune", f"finetune.epochs={'9' * 5000}"),
        ("finetune", "machine.threads=99999999"),
        ("eval", "eval.threshold=-1e400"),
        ("eval", "data.path='a\0b'"),
    ],
)
def test_nothing_is_begun_with_such_a_value(clinic: Any, stage: str, given: str) -> None:
    with pytest.raises(RecipeError) as caught:
        clinic(stage, given)
    assert caught.value.exit_code == 3
    assert not clinic.path.exists()


def test_options_of_components_are_refused_too(clinic: Any) -> None:
    with pytest.raises(ComponentError, match="does not take dropout = nan"):
        installed().resolve(
            DecoderSpec, Choice(name="label-attention", options={"dropout": math.nan})
        )
    with pytest.raises(ComponentError, match="does not take gamma_negative = inf"):
        clinic("finetune", "finetune.loss={name: asymmetric, gamma_negative: .inf}")
    assert not clinic.path.exists()
