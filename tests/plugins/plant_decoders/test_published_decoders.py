"""The decoders that others published equal their equations, and decoders score and rank chosen
pairs as among all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from plant_decoders.attention import look_up_labels
from plant_decoders.label_tables import fill_up
from references import assert_equal, upstream_of
from torch import Tensor

from plant_cli.api import (
    ComponentError,
    Decoder,
    DecoderShape,
    FoldableDecoder,
    GroupedDecoder,
    PairDecoder,
    PlantableDecoder,
    Reading,
    SparseDecoder,
)

Build = Callable[..., Any]
SHAPE = DecoderShape(
    hidden=6,
    labels=5,
    label_ids=["a1.0", "a1.1", "b2", "c3.0", "c3.9"],
    parents=["A", "A", None, "C", "C"],
)


def attend(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    """The mean of the values, weighted by the softmax of query · key."""
    powers = [torch.exp(query @ key) for key in keys]
    total = torch.stack(powers).sum()
    return torch.stack(
        [power / total * value for power, value in zip(powers, values, strict=True)]
    ).sum(0)


def score(
    queries: Tensor, vectors: Tensor, bias: Tensor, keys: list[Tensor], values: list[Tensor]
) -> Tensor:
    """w_l · Σ_t α_lt v_t + b_l for every label [L]."""
    return torch.stack(
        [w @ attend(q, keys, values) + b for q, w, b in zip(queries, vectors, bias, strict=True)]
    )


def convolve(weight: Tensor, bias: Tensor, tokens: list[Tensor]) -> list[Tensor]:
    """Tanh of every filter [F, H, width] at every token; what lies beyond the ends is zero."""
    filters, _, width = weight.shape
    rows = []
    for t in range(len(tokens)):
        row = bias.clone()
        for offset in range(width):
            position = t - width // 2 + offset
            if 0 <= position < len(tokens):
                row = row + torch.stack(
                    [weight[f, :, offset] @ tokens[position] for f in range(filters)]
                )
        rows.append(torch.tanh(row))
    return rows


def read_on(lstm: torch.nn.LSTM, tokens: list[Tensor]) -> list[Tensor]:
    """The states of an LSTM in both directions, by its equations (input, forget, cell, output
    gate).
    """

    def one_way(suffix: str, order: list[Tensor]) -> list[Tensor]:
        w, u = getattr(lstm, f"weight_ih_l0{suffix}"), getattr(lstm, f"weight_hh_l0{suffix}")
        b = getattr(lstm, f"bias_ih_l0{suffix}") + getattr(lstm, f"bias_hh_l0{suffix}")
        h = c = w.new_zeros(u.shape[1])
        states = []
        for x in order:
            i, f, g, o = (w @ x + u @ h + b).chunk(4)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return states

    forward, backward = one_way("", tokens), one_way("_reverse", tokens[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]


def plain_caml(decoder: Any, tokens: list[Tensor]) -> Tensor:
    rows = convolve(decoder.maps.convolution.weight, decoder.maps.convolution.bias, tokens)
    return score(decoder.queries, decoder.vectors, decoder.bias, rows, rows)


def plain_laat(decoder: Any, tokens: list[Tensor]) -> Tensor:
    states = tokens if decoder.maps.states is None else read_on(decoder.maps.states.lstm, tokens)
    keys = [torch.tanh(decoder.maps.to_key.weight @ state) for state in states]
    return score(decoder.queries, decoder.vectors, decoder.bias, keys, states)


def plain_joint_laat(decoder: Any, tokens: list[Tensor]) -> Tensor:
    states = read_on(decoder.states.lstm, tokens)
    groups, labels = plain_laat(decoder.upper, states), plain_laat(decoder.lower, states)
    return labels + decoder.context @ (decoder.to_context.weight @ torch.sigmoid(groups))


def plain_plm_ca(decoder: Any, tokens: list[Tensor]) -> Tensor:
    keys = [decoder.to_key.weight @ state for state in tokens]
    values = [decoder.to_value.weight @ state + decoder.to_value.bias for state in tokens]
    logits = []
    for query in decoder.queries:
        gathered = attend(query, keys, values)
        centred = gathered - gathered.mean()
        normed = (
            decoder.norm.weight * centred / torch.sqrt(centred.square().mean() + decoder.norm.eps)
            + decoder.norm.bias
        )
        logits.append(decoder.output.weight[0] @ normed + decoder.output.bias[0])
    return torch.stack(logits)


EQUATIONS: list[tuple[str, dict[str, int], Callable[..., Tensor]]] = [
    *(("caml", {"filters": 3, "width": width}, plain_caml) for width in (1, 4, 5, 10)),
    ("laat", {"lstm": 4, "inner": 3}, plain_laat),
    ("laat", {"lstm": 0, "inner": 9}, plain_laat),
    ("plm-icd", {}, plain_laat),
    ("joint-laat", {"lstm": 4, "inner": 3, "context": 2}, plain_joint_laat),
    ("plm-ca", {}, plain_plm_ca),
]


@pytest.mark.parametrize(("name", "options", "plain"), EQUATIONS)
def test_a_decoder_equals_its_equations(
    build: Build,
    reading: Reading,
    tokens: list[list[Tensor]],
    name: str,
    options: dict[str, int],
    plain: Callable[..., Tensor],
) -> None:
    decoder = build(name, SHAPE, **options)
    leaves = list(decoder.parameters())
    ours, theirs = decoder(reading), torch.stack([plain(decoder, document) for document in tokens])
    assert_equal(
        (ours, leaves), (theirs, leaves), upstream_of(ours), tolerance=1e-11, gradients=1e-10
    )


def test_groups_of_joint_laat_are_scored_as_laat_scores_labels(
    build: Build, reading: Reading, tokens: list[list[Tensor]]
) -> None:
    decoder = build("joint-laat", SHAPE, lstm=4, inner=3, context=2)
    leaves = [*decoder.upper.parameters(), *decoder.states.parameters()]
    expected = torch.stack(
        [plain_laat(decoder.upper, read_on(decoder.states.lstm, document)) for document in tokens]
    )
    assert_equal((decoder.read_groups(reading).group_logits, leaves), (expected, leaves))


def test_caml_starts_as_published(build: Build) -> None:
    decoder = build(
        "caml", DecoderShape(hidden=64, labels=400, prior=torch.full((400,), 0.1)), stir=False
    )
    assert decoder.maps.convolution.weight.shape == (50, 64, 10)
    bound = (6 / (400 + 50)) ** 0.5  # Glorot and Bengio
    for table in (decoder.queries, decoder.vectors):
        assert table.shape == (400, 50)
        assert 0.99 * bound < table.abs().max() <= bound
    assert not decoder.bias.any()
    assert decoder.maps.dropout.p == 0.2


def test_a_prior_is_the_start_of_the_bias_if_asked(build: Build) -> None:
    decoder = build(
        "caml",
        DecoderShape(hidden=6, labels=2, prior=torch.tensor([0.5, 0.25])),
        stir=False,
        prior_bias=True,
    )
    torch.testing.assert_close(decoder.bias, torch.tensor([0.0, -1.0986123]).double())


def test_queries_that_are_no_hidden_states_do_not_start_from_titles(build: Build) -> None:
    for name in ("caml", "laat", "joint-laat", "plm-icd"):
        with pytest.raises(ComponentError, match=f"'{name}' cannot start from titles"):
            build(
                name,
                DecoderShape(hidden=6, labels=2, queries=torch.zeros(2, 6), parents=["a", "b"]),
            )


def test_laat_and_plm_icd_start_as_published(build: Build) -> None:
    shape = DecoderShape(hidden=64, labels=400)
    laat, plm_icd = build("laat", shape, stir=False), build("plm-icd", shape, stir=False)
    assert (laat.queries.shape, laat.vectors.shape) == ((400, 512), (400, 1024))
    assert (plm_icd.queries.shape, plm_icd.vectors.shape, plm_icd.maps.to_key.weight.shape) == (
        (400, 64),
        (400, 64),
        (64, 64),
    )
    for decoder in (laat, plm_icd):
        for weight in (decoder.queries, decoder.vectors, decoder.maps.to_key.weight):
            assert abs(weight.std().item() - 0.03) < 0.001
        assert not decoder.bias.any()
        assert decoder.maps.to_key.bias is None
    assert laat.maps.dropout.p == 0.3


def test_the_lstm_stops_at_the_last_token_and_a_document_without_any_is_no_fault(
    build: Build, reading: Reading
) -> None:
    decoder = build("laat", lstm=4, inner=3)
    reading.mask[2] = False
    states = decoder.maps.states(reading.hidden, reading.mask)
    assert states.shape == (3, 7, 8)
    assert not states[1, 4:].any()
    assert decoder(reading).isfinite().all()


def test_a_masked_position_within_a_document_is_read_as_padding_is(
    build: Build, reading: Reading
) -> None:
    states = build("laat", lstm=4, inner=3).maps.states
    reading.mask[0, 2] = False
    other = reading.hidden.clone()
    other[0, 2] += 1
    torch.testing.assert_close(
        states(other, reading.mask), states(reading.hidden, reading.mask), rtol=0, atol=0
    )


def test_folded_plm_ca_needs_no_keys(build: Build, reading: Reading) -> None:
    decoder = build("plm-ca")
    assert isinstance(decoder, FoldableDecoder)
    assert not isinstance(decoder, PlantableDecoder)
    with torch.no_grad():
        expected, folded = decoder(reading), decoder.fold()
        torch.testing.assert_close(folded(reading), expected, rtol=0, atol=1e-11)
        torch.testing.assert_close(
            folded(reading, torch.tensor([3, 0])), expected[:, [3, 0]], rtol=0, atol=1e-11
        )
    assert not any("key" in name for name in folded.state_dict())


def test_plm_ca_starts_as_published_or_from_titles(build: Build) -> None:
    decoder = build("plm-ca", DecoderShape(hidden=64, labels=400), stir=False)
    for weight in (
        decoder.queries,
        decoder.to_key.weight,
        decoder.to_value.weight,
        decoder.output.weight,
    ):
        assert abs(weight.std().item() - 0.03) < 0.006
    titles = torch.randn(400, 64)
    assert torch.equal(
        build("plm-ca", DecoderShape(hidden=64, labels=400, queries=titles), stir=False).queries,
        titles.double(),
    )


def test_labels_are_grouped_by_parent_or_by_the_beginning_of_their_ids(build: Build) -> None:
    by_parent, by_prefix = (
        build("joint-laat", SHAPE, lstm=0),
        build("joint-laat", SHAPE, lstm=0, prefix=2),
    )
    assert isinstance(by_parent, GroupedDecoder)
    assert by_parent.groups.tolist() == [1, 1, 0, 2, 2]
    assert by_prefix.groups.tolist() == [0, 0, 1, 2, 2]
    assert len(by_parent.upper.bias) == 3


def test_without_parents_it_says_what_to_do(build: Build) -> None:
    with pytest.raises(ComponentError, match="no parents") as caught:
        build(
            "joint-laat",
            DecoderShape(hidden=6, labels=2, label_ids=["a", "b"], parents=[None, None]),
        )
    assert "prefix=3" in caught.value.todo


PLANTED = pytest.mark.parametrize("name", ["caml", "laat", "plm-icd", "joint-laat"])
TABLES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("caml", "laat", "plm-icd", "joint-laat")),
    ("label-attention", {"heads": 3, "pool": 4}),
    ("label-attention", {"heads": 2, "pool": 4, "prior_bias": False, "norm": "none"}),
    ("label-attention", {"heads": 1, "pool": 6}),
]


@pytest.mark.parametrize(("name", "options"), TABLES)
def test_planted_tables_score_by_how_far_a_document_lies_from_background_to_prototype(
    build: Build, reading: Reading, name: str, options: dict[str, Any]
) -> None:
    decoder = build(name, SHAPE, **options)
    assert isinstance(decoder, Decoder)
    assert isinstance(decoder, PlantableDecoder)
    assert isinstance(decoder, SparseDecoder)
    prototypes, background = torch.randn(
        2, 5, decoder.gathered_size, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    decoder.plant_tables(prototypes, background, 10.0)
    gathered, away = decoder.gather(reading, torch.arange(5)), prototypes - background
    share = ((gathered - background) * away).sum(-1) / away.square().sum(-1)
    torch.testing.assert_close(decoder(reading), 10.0 * (share - 0.5), rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), TABLES[:5])
def test_a_label_that_no_document_tells_apart_gets_no_endless_table(
    build: Build, name: str, options: dict[str, Any]
) -> None:
    decoder = build(name, SHAPE, **options)
    prototypes = torch.randn(
        5, decoder.gathered_size, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    background = prototypes + 1.0
    background[3], background[2] = prototypes[3], prototypes[2] + 1e-3
    decoder.plant_tables(prototypes, background, 10.0)
    vectors = (
        decoder.boost_scale
        if name == "label-attention"
        else getattr(decoder, "lower", decoder).vectors
    )
    assert not vectors[3].any()
    assert 0 < vectors[2].abs().max() < vectors[0].abs().max()
    assert all(parameter.isfinite().all() for parameter in decoder.parameters())


@PLANTED
def test_sharpness_scales_the_scores_and_keeps_the_order(
    build: Build, reading: Reading, name: str
) -> None:
    decoder = build(name, SHAPE)
    before, graded = (
        decoder.rank(reading, torch.arange(5)),
        decoder.gather_sharpened(reading, torch.arange(5), (1.0, 0.25)),
    )
    torch.testing.assert_close(
        graded[0], decoder.gather(reading, torch.arange(5)), rtol=0, atol=1e-10
    )
    decoder.sharpen(0.25)
    torch.testing.assert_close(
        graded[1], decoder.gather(reading, torch.arange(5)), rtol=0, atol=1e-10
    )
    torch.testing.assert_close(
        decoder.rank(reading, torch.arange(5)),
        torch.log_softmax(before * 0.25, dim=-1),
        rtol=0,
        atol=1e-10,
    )


def test_rows_of_tables_and_labels_that_are_filled_up() -> None:
    table, labels = torch.arange(6.0).view(3, 2), torch.tensor([2, 0])
    assert look_up_labels(table, None, sparse=True) is table
    assert look_up_labels(table, labels, sparse=False).tolist() == [[4, 5], [0, 1]]
    assert look_up_labels(table[:, 0], labels, sparse=True).tolist() == [4, 0]
    assert fill_up(torch.tensor([3, 1])).tolist() == [3, *[1] * 63]
    assert len(fill_up(torch.arange(64))) == 64


@pytest.mark.parametrize("chosen", [[1], [4, 1], [4, 3, 2, 1, 0]])
@pytest.mark.parametrize(("name", "options"), [*TABLES[:5], ("plm-ca", {})])
def test_chosen_labels_touch_no_other_row_of_a_table(
    build: Build, reading: Reading, name: str, options: dict[str, Any], chosen: list[int]
) -> None:
    """Though their number is filled up to whole tiles: an optimiser of sparse gradients moves
    every row that is named.
    """
    decoder, labels = build(name, SHAPE, **options), torch.tensor(chosen)
    decoder.sparse = True
    logits, logs = decoder(reading, labels), decoder.rank(reading, labels)
    assert (logits.shape[1], logs.shape[1]) == (len(chosen), len(chosen))
    (logits.sum() + logs[logs.isfinite()].square().sum()).backward()
    for table in decoder.label_tables():
        assert table.grad.coalesce().indices()[0].tolist() == sorted(chosen)


PAIRS = {
    "label-attention": {"heads": 2, "pool": 3},
    "dot-attention": {"pool": 4},
    "caml": {},
    "laat": {"lstm": 3},
    "joint-laat": {"lstm": 0, "prefix": 1},
    "plm-icd": {},
    "plm-ca": {},
}
LABEL_IDS = ["a1", "a2", "b1", "b2", "c1"]
CHOSEN, WANTED = (
    torch.tensor([4, 0, 3]),
    torch.tensor([[True, False, True], [False, False, False], [True, True, False]]),
)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ranked", [False, True], ids=["scored", "ranked"])
@pytest.mark.parametrize("name", PAIRS)
def test_chosen_pairs_are_as_among_all_with_the_same_gradients(
    build: Build, reading: Reading, name: str, ranked: bool, sparse: bool
) -> None:
    """In double precision; the pairs that are not wanted have no gradient, whatever comes from
    above.
    """
    decoder = build(name, DecoderShape(hidden=6, labels=5, label_ids=LABEL_IDS), **PAIRS[name])
    assert isinstance(decoder, PairDecoder)
    real = reading.mask[:, None, :] & WANTED[:, :, None] if ranked else WANTED
    found: list[tuple[Tensor, dict[str, Tensor]]] = []
    for pairs in (False, True):
        decoder.zero_grad()
        decoder.sparse = sparse and pairs
        if ranked:
            numbers = (
                decoder.rank_pairs(reading, CHOSEN, WANTED)
                if pairs
                else decoder.rank(reading, CHOSEN)
            )
        else:
            numbers = (
                decoder.score_pairs(reading, CHOSEN, WANTED)
                if pairs
                else decoder(reading)[:, CHOSEN]
            )
        (numbers[real] * upstream_of(numbers)[real]).sum().backward()
        gradients = {
            key: p.grad.to_dense().clone()
            for key, p in decoder.named_parameters()
            if p.grad is not None
        }
        found.append((numbers[real].detach(), gradients))
    (whole, expected), (some, given) = found
    torch.testing.assert_close(some, whole, rtol=0, atol=1e-12)
    assert given.keys() == expected.keys()
    for key, gradient in given.items():
        torch.testing.assert_close(gradient, expected[key], rtol=0, atol=1e-11)
