"""The backbone: documents read window by window; the published checks of backbones hold for
both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_awd_lstm import (
    AwdLstmOptions,
    PretrainLmOptions,
    plant_register_backbones,
    plant_register_stages,
)
from plant_awd_lstm.language_model import fit_vocabulary
from plant_awd_lstm.lstm_backbone import AwdLstmBackbone, load
from plant_network import backbone_checks as backbones

from plant_cli.api import BackboneSpec, ComponentError, MachineSection, TrainingError
from plant_cli.testing.checklist import checks_of

LONG = "the patient was admitted with fever and cough . no evidence of fracture"


@pytest.fixture
def backbone(language_model: Callable[..., Path]) -> Callable[..., AwdLstmBackbone]:
    def make(**options: Any) -> AwdLstmBackbone:
        made = AwdLstmBackbone(AwdLstmOptions(**options), language_model())
        made.module().eval()
        return made

    return make


def test_a_long_document_is_read_with_carried_state(
    backbone: Callable[..., AwdLstmBackbone],
) -> None:
    """In windows of three it is what one window over all of it gives; nothing is cut off."""
    whole, parts = backbone(window=1000), backbone(window=3)
    batch = whole.tokenize([LONG * 20, "fever", LONG])
    assert [len(ids) for ids in batch.ids] == [
        20 * 13 - 19,
        1,
        13,
    ]  # the last word of a copy and the first of the next are one
    assert list(batch.dropped) == [0, 0, 0]
    expected, mask = whole.encode(batch)
    found, found_mask = parts.encode(batch)
    assert torch.equal(mask, found_mask)
    torch.testing.assert_close(found[mask], expected[mask], rtol=0, atol=1e-6)


@pytest.mark.parametrize("words", range(1, 9))
def test_a_shorter_document_may_end_anywhere_in_a_window(
    backbone: Callable[..., AwdLstmBackbone], words: int
) -> None:
    """The mark of the beginning comes before its first token and takes a place in the first
    window.
    """
    whole, parts = backbone(window=1000), backbone(window=3)
    batch = whole.tokenize([LONG, " ".join(LONG.split()[:words])])
    (expected, mask), (found, _) = whole.encode(batch), parts.encode(batch)
    torch.testing.assert_close(found[mask], expected[mask], rtol=0, atol=1e-6)


def test_the_backward_model_reads_the_reversed_document(
    backbone: Callable[..., AwdLstmBackbone],
) -> None:
    forward, backward = backbone(window=4), backbone(window=4, direction="backward")
    backward.network.load_state_dict(forward.network.state_dict())
    texts = [LONG, "fever and cough", ""]
    turned = [" ".join(reversed(text.split())) for text in texts]
    found, mask = backward.encode(backward.tokenize(texts))
    expected, _ = forward.encode(forward.tokenize(turned))
    for row, text in enumerate(texts):
        length = len(text.split())
        assert int(mask[row].sum()) == length
        torch.testing.assert_close(found[row, :length], expected[row, :length].flip(0))


def test_gradients_end_where_a_window_begins(backbone: Callable[..., AwdLstmBackbone]) -> None:
    made = backbone(window=4)
    batch = made.tokenize([LONG])
    hidden, _ = made.encode(batch)
    hidden[0, -1].sum().backward()
    reached = {int(row) for row in made.network.embedding.weight.grad.abs().sum(1).nonzero()}
    assert reached == set(batch.ids[0][11:].tolist())  # what the last window reads


@pytest.mark.parametrize(("direction", "window"), [("forward", 2), ("backward", 3)])
def test_a_state_that_is_not_a_number_is_told(
    backbone: Callable[..., AwdLstmBackbone], direction: str, window: int
) -> None:
    """The first token that is read: the sixth of thirteen, eighth from behind; the mark of the
    beginning goes before.
    """
    made = backbone(window=4, direction=direction)
    with torch.no_grad():
        made.network.embedding.weight[made.vocabulary.rows["fever"]] = float("nan")
    with pytest.raises(TrainingError, match="not a number") as caught:
        made.encode(made.tokenize(["no cough", LONG]))
    assert f"document 2 of the batch, token 6 (window {window})" in caught.value.where


def test_what_it_saves_is_all_that_loading_needs(
    backbone: Callable[..., AwdLstmBackbone], tmp_path: Path
) -> None:
    assert "validation perplexity 13.5" in backbone(direction="backward").origin
    made = backbone()
    assert [len(group) for group in made.layer_groups()] == [1, 4, 4]
    with torch.no_grad():
        for parameter in made.module().parameters():
            parameter.add_(0.1)
    made.save(tmp_path / "saved")
    again = AwdLstmBackbone(AwdLstmOptions(), tmp_path / "saved")
    again.module().eval()
    batch = made.tokenize([LONG])
    assert torch.equal(again.encode(batch)[0], made.encode(batch)[0])
    fresh = backbone()
    fresh.restore(tmp_path / "saved")
    assert torch.equal(fresh.encode(batch)[0], made.encode(batch)[0])


@pytest.mark.parametrize("check", checks_of(BackboneSpec), ids=lambda check: check.__name__)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_it_is_a_backbone(
    check: Callable[[Any], None], direction: str, language_model: Callable[..., Path]
) -> None:
    """By default it has no language model, and the published checks are passed over."""
    (spec,) = plant_register_backbones()
    folder = language_model(
        words=fit_vocabulary(backbones.BACKBONE_TEXTS, min_count=1, max_words=99)
    )
    chosen = {"language_model": str(folder), "direction": direction, "max_tokens": 50, "window": 7}
    loaded = []

    def load_chosen(options: Any, machine: MachineSection) -> Any:
        loaded.append(load(options.model_copy(update=chosen), machine))
        return loaded[-1]

    check(replace(spec, load=load_chosen))
    assert loaded or check is backbones.languages_are_codes


def test_without_a_language_model_it_says_what_to_run() -> None:
    with pytest.raises(ComponentError, match="no language model") as caught:
        load(AwdLstmOptions(), MachineSection())
    assert "plant pretrain-lm" in caught.value.todo


def test_the_stage_makes_what_the_backbone_starts_from_in_the_sizes_of_the_paper() -> None:
    (backbone,), (stage,) = plant_register_backbones(), plant_register_stages()
    assert backbone.start is not None
    assert backbone.start.stage == stage.name
    assert backbone.start.option in backbone.options.model_fields
    options = PretrainLmOptions()
    assert (options.embedding, options.hidden, options.layers, options.window) == (400, 1152, 3, 72)
