"""Checks of backbones: tokens that point into their text, hidden states that depend on the
document alone, truncation that is counted.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from plant_cli.api import BackboneSpec, ComponentError, MachineSection, ResourceError, TokenBatch
from plant_cli.scoring.cuts import tokenize
from plant_cli.testing.checklist import check, default_options
from plant_network.answers import encode

BACKBONE_TEXTS = (
    "The patient was admitted with pneumonia and treated with antibiotics.",
    "No evidence of fracture.",
    "Größere Änderungen – naïve café, x² ≥ 3; İstanbul.",
)
BACKBONE_RTOL, BACKBONE_ATOL = 1e-3, 1e-4


@check(BackboneSpec)
def languages_are_codes(spec: BackboneSpec) -> None:
    """The languages that it declares are two-letter codes of ISO 639-1, without repeats."""
    declared = spec.languages or ()
    wrong = [
        code
        for code in declared
        if len(code) != 2 or not (code.isascii() and code.isalpha() and code.islower())
    ]
    assert not wrong, f"no codes of ISO 639-1: {', '.join(wrong)}"
    assert len(set(declared)) == len(declared), "a language is declared twice"


@check(BackboneSpec)
def spans_point_into_the_text(spec: BackboneSpec) -> None:
    """Every token has a span of at least one character, in order, inside its document."""
    batch = tokenize(_loaded(spec), BACKBONE_TEXTS)
    assert len(batch) == len(BACKBONE_TEXTS), (
        f"{len(batch)} documents for {len(BACKBONE_TEXTS)} texts"
    )
    for text, ids, spans in zip(BACKBONE_TEXTS, batch.ids, batch.spans, strict=True):
        assert tuple(spans.shape) == (len(ids), 2), (
            f"{len(ids)} tokens with spans of shape {tuple(spans.shape)}"
        )
        assert len(ids), f"no token in {text!r}"
        assert (spans[:, 0] < spans[:, 1]).all(), "a token without characters (a special token?)"
        assert spans.min() >= 0, "a span begins before the text"
        assert spans.max() <= len(text), "a span ends beyond the text"
        assert (spans[1:, 0] >= spans[:-1, 0]).all(), "spans are not in order"


@check(BackboneSpec)
def every_word_is_covered(spec: BackboneSpec) -> None:
    """Every letter of the first text belongs to a token, so that words can be found among the
    tokens.
    """
    batch = tokenize(_loaded(spec), BACKBONE_TEXTS[:1])
    covered = {position for start, end in batch.spans[0] for position in range(start, end)}
    lost = [
        c for position, c in enumerate(BACKBONE_TEXTS[0]) if c.isalpha() and position not in covered
    ]
    assert not lost, f"characters in no token: {''.join(lost)}"


@check(BackboneSpec)
def hidden_states_have_their_shape(spec: BackboneSpec) -> None:
    """Hidden states [B, T, H] and a boolean mask with as many true positions as there are
    tokens.
    """
    hidden, mask = _encode(_loaded(spec), BACKBONE_TEXTS)
    assert tuple(hidden.shape) == (*mask.shape, _loaded(spec).hidden_size), (
        f"hidden states have shape {tuple(hidden.shape)}"
    )
    assert mask.dtype == torch.bool, f"the mask is {mask.dtype}"


@check(BackboneSpec)
def windows_are_joined(spec: BackboneSpec) -> None:
    """A document longer than one window has hidden states for each of its tokens."""
    _encode(_loaded(spec), ("fever and cough were noted again today " * 100, BACKBONE_TEXTS[0]))


@check(BackboneSpec)
def documents_stand_alone(spec: BackboneSpec) -> None:
    """Neither padding nor the other documents of the batch, nor their order, change a
    document's hidden states.
    """
    backbone = _loaded(spec)
    batch = tokenize(backbone, BACKBONE_TEXTS)
    with torch.no_grad():
        together, mask = encode(backbone, batch)
        mixed, mixed_mask = backbone.encode(batch.select([2, 0, 1]))
        alone, alone_mask = backbone.encode(batch.select([1]))
    for place, row in enumerate((2, 0, 1)):
        torch.testing.assert_close(
            mixed[place][mixed_mask[place]],
            together[row][mask[row]],
            rtol=BACKBONE_RTOL,
            atol=BACKBONE_ATOL,
        )
    torch.testing.assert_close(
        alone[0][alone_mask[0]], together[1][mask[1]], rtol=BACKBONE_RTOL, atol=BACKBONE_ATOL
    )


@check(BackboneSpec)
def long_documents_are_not_cut_in_silence(spec: BackboneSpec) -> None:
    """A text beyond the limit keeps `max_length` tokens at most, and the tokens dropped are
    counted.
    """
    backbone = _loaded(spec)
    piece = "pneumonia and fever "
    shorter = tokenize(backbone, [piece * 2, piece * 3])
    two, three = (
        len(ids) + int(dropped) for ids, dropped in zip(shorter.ids, shorter.dropped, strict=True)
    )
    pieces = backbone.max_length // (three - two) + 10  # the first may be of more tokens
    whole = two + (pieces - 2) * (three - two)
    batch = tokenize(backbone, [piece * pieces, piece])
    kept, dropped = len(batch.ids[0]), int(batch.dropped[0])
    assert kept <= backbone.max_length, f"{kept} tokens kept, the limit is {backbone.max_length}"
    assert kept + dropped == whole, f"{kept} kept and {dropped} dropped of {whole} tokens"
    assert int(batch.dropped[1]) == 0, "tokens of a short text were dropped"


@check(BackboneSpec)
def groups_hold_every_trainable_parameter_once(spec: BackboneSpec) -> None:
    """Gradual unfreezing reaches every trainable parameter through exactly one group."""
    backbone = _loaded(spec)
    listed = [id(parameter) for group in backbone.layer_groups() for parameter in group]
    assert len(listed) == len(set(listed)), "a parameter is in two groups"
    trainable = {
        id(parameter) for parameter in backbone.module().parameters() if parameter.requires_grad
    }
    assert set(listed) == trainable, (
        f"{len(trainable - set(listed))} trainable parameters in no group"
    )


@check(BackboneSpec)
def restored_weights_give_the_same_states(spec: BackboneSpec) -> None:
    """`restore` brings back what fine-tuning changed and `save` wrote."""
    changed, fresh = _load(spec, seed=0), _load(spec, seed=0)
    with torch.no_grad():
        for group in changed.layer_groups():
            for parameter in group:
                parameter.add_(0.01)
    with tempfile.TemporaryDirectory() as folder:
        changed.save(Path(folder))
        fresh.restore(Path(folder))
    torch.testing.assert_close(
        _encode(fresh, BACKBONE_TEXTS)[0], _encode(changed, BACKBONE_TEXTS)[0], rtol=0, atol=0
    )


@check(BackboneSpec)
def tokenizer_hash_is_stable(spec: BackboneSpec) -> None:
    """Two loads have one tokenizer, and cut texts alike."""
    first, second = _loaded(spec), _load(spec, seed=1)
    assert first.tokenizer_hash == second.tokenizer_hash, (
        "the tokenizer's hash changes from load to load"
    )
    assert [ids.tolist() for ids in tokenize(first, BACKBONE_TEXTS).ids] == [
        ids.tolist() for ids in tokenize(second, BACKBONE_TEXTS).ids
    ]


@cache
def _loaded(spec: BackboneSpec) -> Any:
    return _load(spec, seed=0)


def _load(spec: BackboneSpec, seed: int) -> Any:
    options = default_options(spec)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            backbone: Any = spec.load(options, MachineSection(device="cpu", precision="fp32"))
        except (
            ComponentError,
            ResourceError,
        ) as error:  # weights or a device that this machine does not have
            pytest.skip(str(error))
    backbone.module().eval()
    return backbone


def _encode(backbone: Any, texts: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states and mask, which count the tokens and are finite."""
    batch: TokenBatch = tokenize(backbone, texts)
    with torch.no_grad():
        hidden, mask = encode(backbone, batch)
    lengths = [len(ids) for ids in batch.ids]
    assert tuple(mask.shape) == (len(texts), max(lengths)), (
        f"the mask has shape {tuple(mask.shape)}"
    )
    assert mask.sum(1).tolist() == lengths, "the mask does not count the tokens"
    assert bool(hidden[mask].isfinite().all()), "some hidden states are not finite"
    return hidden, mask
