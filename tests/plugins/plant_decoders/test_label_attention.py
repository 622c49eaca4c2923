"""Label attention equals the literal network and keeps the promises of every decoder; dot
attention is the plain loop.
"""

import pytest
import torch
from plant_decoders import DotAttentionOptions, LabelAttentionOptions
from plant_decoders.attention import pooling_matrix
from plant_decoders.label_attention import DotAttention, LabelAttention
from references import LiteralHead, literal_logits
from torch import nn

from plant_cli.api import ComponentError, DecoderShape, FoldableDecoder, QueryDecoder, Reading

LABELS, HIDDEN = 11, 12


def build(
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    stir: bool = True,
    shape: DecoderShape | None = None,
    **options: object,
) -> LabelAttention:
    """A decoder; stirred: every parameter away from its neutral start, so that nothing can hide."""
    torch.manual_seed(seed)
    decoder = LabelAttention(
        LabelAttentionOptions(**{"heads": 3, "pool": 5, **options}),
        shape or DecoderShape(hidden=HIDDEN, labels=LABELS),
    ).to(dtype)
    if stir:
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter += 0.5 * torch.randn_like(parameter)
    return decoder


def batch(dtype: torch.dtype = torch.float32) -> Reading:
    hidden = torch.randn(
        4, 6, HIDDEN, generator=torch.Generator().manual_seed(9), dtype=torch.float64
    ).to(dtype)
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[1, 3:] = False
    mask[2, 0] = False
    return Reading.of(hidden, mask)


def literal(decoder: LabelAttention) -> LiteralHead:
    """The same weights in the paper's form."""
    attention = nn.MultiheadAttention(HIDDEN, decoder.heads, batch_first=True, dtype=torch.float64)
    maps = (decoder.to_query, decoder.to_key, decoder.to_value)
    attention.in_proj_weight.data = torch.cat([m.weight for m in maps]).detach()
    attention.in_proj_bias.data = torch.cat([m.bias for m in maps]).detach()
    attention.out_proj.load_state_dict(decoder.to_output.state_dict())
    bias = torch.zeros(LABELS, dtype=torch.float64) if decoder.bias is None else decoder.bias
    return LiteralHead(
        queries=decoder.queries
        if decoder.query_basis is None
        else decoder.queries @ decoder.query_basis,
        attention=attention,
        boost_scale=decoder.boost_scale,
        boost_shift=decoder.boost_shift,
        projection=decoder.projection,
        bias=bias,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "none"},
        {"prior_bias": False},
        {"label_rank": 2},
        {"pool": 4, "heads": 1},
        {"elements": 1},
    ],
    ids=str,
)
def test_equals_the_literal_network(options: dict[str, object]) -> None:
    decoder = build(dtype=torch.float64, **options)
    decoder.pooling = pooling_matrix(
        HIDDEN, len(decoder.projection)
    )  # the decoder's own is in fp32
    reading = batch(torch.float64)
    logits, weights = literal_logits(literal(decoder), decoder.norm(reading.hidden), reading.mask)
    torch.testing.assert_close(decoder(reading), logits, rtol=0, atol=1e-10)
    torch.testing.assert_close(
        decoder.attention(reading, torch.arange(LABELS)), weights, rtol=0, atol=1e-10
    )


def test_starts_at_the_prior() -> None:
    prior = torch.tensor([0.5, 0.25, 0.0, 1.0, *[0.1] * 7])
    decoder = build(stir=False, shape=DecoderShape(hidden=HIDDEN, labels=LABELS, prior=prior))
    assert decoder.bias is not None
    torch.testing.assert_close(decoder.bias[:2], torch.tensor([0.0, -1.0986123]))
    assert torch.isfinite(decoder.bias).all()
    assert build(prior_bias=False).bias is None


def test_starts_at_the_given_queries_in_full_or_low_rank() -> None:
    low = torch.randn(LABELS, 3) @ torch.randn(3, HIDDEN)
    shape = DecoderShape(hidden=HIDDEN, labels=LABELS, queries=low)
    assert torch.equal(build(stir=False, shape=shape).queries, low)
    factored = build(stir=False, shape=shape, label_rank=3)
    assert factored.query_basis is not None
    torch.testing.assert_close(factored.queries @ factored.query_basis, low, rtol=1e-4, atol=1e-4)


def test_heads_and_ranks_that_do_not_fit_are_refused_with_those_that_do() -> None:
    with pytest.raises(ComponentError, match="5 heads do not divide the hidden size 12") as caught:
        build(heads=5)
    assert "1, 2, 3, 4, 6" in caught.value.expected
    for queries in (None, torch.ones(LABELS, HIDDEN)):
        shape = DecoderShape(hidden=HIDDEN, labels=LABELS, queries=queries)
        with pytest.raises(ComponentError, match=f"rank 13 .* hidden size {HIDDEN}") as caught:
            build(stir=False, shape=shape, label_rank=HIDDEN + 1)
        assert caught.value.todo.startswith("--set model.decoder.label_rank=3")
        assert build(stir=False, shape=shape, label_rank=HIDDEN).queries.shape == (LABELS, HIDDEN)


def test_sharpness_keeps_the_order_of_one_head_but_not_of_several() -> None:
    """Heads are averaged after the softmax."""
    reading, every = batch(torch.float64), torch.arange(LABELS)
    one, four = (build(dtype=torch.float64, heads=heads) for heads in (1, 4))
    before, order = one.rank(reading, every), four.rank(reading, every)[0].argsort(-1)
    one.sharpen(0.25)
    torch.testing.assert_close(
        one.rank(reading, every), torch.log_softmax(before * 0.25, dim=-1), rtol=0, atol=1e-10
    )
    four.sharpen(1 / 64)
    assert not torch.equal(four.rank(reading, every)[0].argsort(-1), order)


@pytest.mark.parametrize("heads", [1, 4])
def test_planted_queries_score_positions_by_their_plain_product_with_keys(heads: int) -> None:
    decoder = build(dtype=torch.float64, heads=heads)
    assert isinstance(decoder, QueryDecoder)
    reading = batch(torch.float64)
    queries = torch.randn(
        LABELS, HIDDEN, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )
    decoder.plant_queries(queries)
    keys = decoder.keys(reading)[0, reading.mask[0]].view(-1, heads, HIDDEN // heads)
    products = torch.einsum("lhd,thd->hlt", queries.view(LABELS, heads, -1), keys)
    expected = torch.softmax(products, -1).mean(0)
    found = decoder.attention(reading, torch.arange(LABELS))[0][:, reading.mask[0]]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_planted_queries_of_low_rank_are_the_best_of_that_rank() -> None:
    decoder = build(dtype=torch.float64, heads=1, label_rank=4)
    assert isinstance(decoder, QueryDecoder)
    draw = torch.Generator().manual_seed(2)
    queries = torch.randn(LABELS, 4, generator=draw, dtype=torch.float64) @ torch.randn(
        4, HIDDEN, generator=draw, dtype=torch.float64
    )
    decoder.plant_queries(queries)
    found, _, _ = decoder.terms()
    torch.testing.assert_close(found, queries * HIDDEN**0.5, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"prior_bias": False, "norm": "none"}, {"label_rank": 4}], ids=str
)
@pytest.mark.parametrize("product", [torch.float32, torch.bfloat16])
def test_the_folded_form_gives_the_same_logits_from_two_tables(
    options: dict[str, object], product: torch.dtype
) -> None:
    decoder = build(**options).eval()
    assert isinstance(decoder, FoldableDecoder)
    with (
        torch.no_grad(),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=product == torch.bfloat16),
    ):
        expected, folded = decoder(batch()), decoder.fold()
        assert torch.equal(folded(batch()), expected)
    tables = [
        x for x in (*folded.parameters(), *folded.buffers()) if len(x) == LABELS and x.dim() == 2
    ]
    assert [(tuple(x.shape), x.dtype) for x in tables] == [((LABELS, HIDDEN), product)] * 2


def make_dot() -> tuple[DotAttention, Reading]:
    torch.manual_seed(0)
    decoder = DotAttention(
        DotAttentionOptions(pool=3, init_scale=1.0), DecoderShape(hidden=HIDDEN, labels=LABELS)
    ).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    hidden, mask = (
        torch.randn(2, 7, HIDDEN, dtype=torch.float64),
        torch.ones(2, 7, dtype=torch.bool),
    )
    mask[1, 4:] = False
    return decoder, Reading.of(hidden, mask)


def test_dot_attention_is_the_plain_loop() -> None:
    decoder, reading = make_dot()
    logits = decoder(reading)
    for document in range(2):
        states = reading.hidden[document][reading.mask[document]]
        for label in range(LABELS):
            attention = torch.softmax(states @ decoder.queries[label], dim=0)
            boosted = decoder.boost_shift[label] + decoder.boost_scale[label] * (attention @ states)
            pooled = boosted.view(3, -1).mean(1)
            expected = pooled @ decoder.projection + decoder.common_bias[0]
            torch.testing.assert_close(
                logits[document, label].double(), expected, rtol=1e-5, atol=1e-5
            )
            torch.testing.assert_close(
                decoder.attention(reading, torch.arange(LABELS))[document, label][
                    : len(states)
                ].double(),
                attention,
            )


def test_planted_queries_of_dot_attention_are_multiplied_with_states_as_they_are() -> None:
    decoder, reading = make_dot()
    queries = torch.randn(
        LABELS, HIDDEN, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    decoder.plant_queries(queries)
    expected = torch.softmax(queries @ reading.hidden[0].T, dim=-1)
    torch.testing.assert_close(
        decoder.attention(reading, torch.arange(LABELS))[0], expected, rtol=0, atol=1e-6
    )
