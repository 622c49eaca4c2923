"""What a decoder owes: shapes, independence of padding, order and label subsets, and one role for every parameter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import DecoderShape, DecoderSpec, Reading, SparseDecoder
from plant_cli.testing.specs import default_options

HIDDEN, LABELS, LENGTHS = 64, 7, (9, 5, 1)
ROLES = {"attention", "value", "boost", "head"}
RTOL, ATOL = 1e-4, 1e-5


def logits_have_their_shape(spec: DecoderSpec) -> None:
    """Logits [B, L], finite, for documents of one token too."""
    logits = _build(spec)(_sample())
    assert tuple(logits.shape) == (len(LENGTHS), LABELS), f"logits have shape {tuple(logits.shape)}"
    assert bool(logits.isfinite().all()), "some logits are not finite"


def some_labels_equal_their_columns(spec: DecoderSpec) -> None:
    """Scoring chosen labels gives what scoring all of them gives there, in the order asked for."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([5, 0, 3])
    reading = _sample()
    torch.testing.assert_close(decoder(reading, chosen), decoder(reading)[:, chosen], rtol=RTOL, atol=ATOL)


def padding_changes_nothing(spec: DecoderSpec) -> None:
    """What stands at masked positions, and how many there are, does not matter."""
    import torch

    decoder = _build(spec)
    reading = _sample()
    filled = torch.where(reading.mask[..., None], reading.hidden, torch.full_like(reading.hidden, 7.0))
    longer = Reading(
        hidden=torch.cat([filled, torch.full((len(LENGTHS), 4, HIDDEN), -3.0)], dim=1),
        mask=torch.cat([reading.mask, torch.zeros(len(LENGTHS), 4, dtype=torch.bool)], dim=1),
        words=torch.cat([reading.words, torch.full((len(LENGTHS), 4), -1)], dim=1),
    )
    torch.testing.assert_close(decoder(longer), decoder(reading), rtol=RTOL, atol=ATOL)


def documents_stand_alone(spec: DecoderSpec) -> None:
    """A document's logits do not depend on its neighbours in the batch."""
    import torch

    decoder = _build(spec)
    reading = _sample()
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(decoder(reading.select(order)), decoder(reading)[order], rtol=RTOL, atol=ATOL)
    torch.testing.assert_close(decoder(reading.select(slice(1))), decoder(reading)[:1], rtol=RTOL, atol=ATOL)


def attention_sums_to_one(spec: DecoderSpec) -> None:
    """Attention [B, l, T] is a distribution over real tokens, and `rank` the logarithm of one: of the same, or of the planted part."""
    import torch

    decoder, chosen = _build(spec), torch.tensor([6, 2])
    reading = _sample()
    weights, logs = decoder.attention(reading, chosen), decoder.rank(reading, chosen)
    assert tuple(weights.shape) == tuple(logs.shape) == (len(LENGTHS), 2, max(LENGTHS))
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS), 2), rtol=RTOL, atol=ATOL)
    padding = ~reading.mask[:, None, :].expand_as(weights)
    assert not bool(weights[padding].any()), "padding is attended"
    assert bool(torch.isneginf(logs[padding]).all()), "rank is not -inf at padding"
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(len(LENGTHS), 2), rtol=RTOL, atol=ATOL)


def every_parameter_has_one_role(spec: DecoderSpec) -> None:
    """Roles are attention, value and head, and cover the parameters once."""
    decoder = _build(spec)
    roles = decoder.parameter_roles()
    assert set(roles) <= ROLES, f"unknown roles {sorted(set(roles) - ROLES)}"
    assert list(roles.get("attention", [])), "nothing has the role attention: stage 1 would train nothing"
    listed = [id(parameter) for parameters in roles.values() for parameter in parameters]
    assert len(listed) == len(set(listed)), "a parameter has two roles"
    assert set(listed) == {id(parameter) for parameter in decoder.parameters()}, "roles do not cover the parameters"


def ranking_trains_the_attention(spec: DecoderSpec) -> None:
    """Stage 1 reaches every parameter with the role attention and none with the role head."""
    import torch

    decoder = _build(spec)
    reading = _sample()
    ranks = decoder.rank(reading, torch.arange(LABELS))
    ranks[reading.mask[:, None, :].expand_as(ranks)].square().sum().backward()
    roles = decoder.parameter_roles()
    assert any(p.grad is not None and bool(p.grad.any()) for p in roles["attention"]), "the attention gets no gradient"
    assert all(p.grad is None or not bool(p.grad.any()) for p in roles.get("head", [])), "the head gets a gradient from ranking"


def sparse_gradients_are_the_dense_ones(spec: DecoderSpec) -> None:
    """A decoder with label tables hands on gradients of the asked rows alone, equal to the dense ones."""
    import torch

    dense, sparse, chosen = _build(spec), _build(spec), torch.tensor([5, 0, 3])
    has_tables = isinstance(sparse, SparseDecoder)
    if not has_tables:
        pytest.skip("for decoders with label tables")
    reading = _sample()
    sparse.sparse = True
    for decoder in (dense, sparse):
        decoder(reading, chosen).square().sum().backward()
        ranks = decoder.rank(reading, chosen)
        ranks[reading.mask[:, None, :].expand_as(ranks)].square().sum().backward()
    for table, other in zip(sparse.label_tables(), dense.label_tables(), strict=True):
        assert len(table) == LABELS, f"a label table has {len(table)} rows for {LABELS} labels"
        if table.grad is not None:
            assert table.grad.is_sparse, "the gradient of a label table is dense"
            torch.testing.assert_close(table.grad.to_dense(), other.grad, rtol=RTOL, atol=ATOL)


def saved_weights_give_the_same_logits(spec: DecoderSpec) -> None:
    """All that matters is in the state dict, which safetensors can hold."""
    import torch
    from safetensors.torch import load_file, save_file

    decoder, other = _build(spec), _build(spec, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "decoder.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in decoder.state_dict().items()}, file)
        other.load_state_dict(load_file(file))
    torch.testing.assert_close(other(_sample()), decoder(_sample()), rtol=0, atol=0)


def _build(spec: DecoderSpec, seed: int = 0) -> Any:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        prior = torch.linspace(0.01, 0.5, LABELS)
        decoder: Any = spec.build(default_options(spec), DecoderShape(hidden=HIDDEN, labels=LABELS, prior=prior))
    return decoder.eval()


def _sample() -> Reading:
    import torch

    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    hidden = torch.randn(len(LENGTHS), max(LENGTHS), HIDDEN, generator=torch.Generator().manual_seed(5))
    return Reading.of(hidden * mask[..., None], mask)


CHECKS = (
    logits_have_their_shape,
    some_labels_equal_their_columns,
    padding_changes_nothing,
    documents_stand_alone,
    attention_sums_to_one,
    every_parameter_has_one_role,
    ranking_trains_the_attention,
    sparse_gradients_are_the_dense_ones,
    saved_weights_give_the_same_logits,
)
