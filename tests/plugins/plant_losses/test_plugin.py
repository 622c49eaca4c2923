"""The losses that are registered, and that each is built from its own options."""

import pytest
from plant_losses import plant_register_losses

RANK = {"approx-ndcg", "lambda", "listnet", "mse"}
LABEL = {"asymmetric", "bce", "focal-hnm", "label-ndcg"}


def test_losses_are_registered_for_their_stage() -> None:
    found = {stage: {spec.name for spec in plant_register_losses() if spec.stage == stage} for stage in ("rank", "label")}
    assert found == {"rank": RANK, "label": LABEL}


@pytest.mark.parametrize("name", sorted(RANK | LABEL))
def test_each_is_built_from_its_default_options(name: str) -> None:
    (spec,) = [spec for spec in plant_register_losses() if spec.name == name]
    assert callable(spec.build(spec.options()))
