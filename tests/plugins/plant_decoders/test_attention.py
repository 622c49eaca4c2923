"""Every form of label attention equals its textbook form, in any division of the work; the
fused form equals the literal network.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from plant_decoders import attention
from plant_decoders.attention import (
    _LabelAttention,
    attend,
    attend_in_blocks,
    label_attention,
    log_attention,
    pooling_matrix,
)
from plant_decoders.gathering import (
    gather_sharpened,
    gather_states,
    normed_attention,
    single_head_attention,
    single_head_log_attention,
    single_head_sharpened,
    single_head_states,
)
from references import LiteralHead, assert_equal, exact, literal_logits, random_tensors, upstream_of
from torch import Tensor, nn

LABELS, HIDDEN, HEADS, DOCUMENTS, POSITIONS = 130, 12, 3, 4, 9
MASK = torch.tensor(
    [[True] * 9, [True] * 4 + [False] * 5, [True, False, True] + [False] * 6, [False] * 9]
)
LEAVES = (
    (LABELS, HIDDEN),
    (LABELS, HIDDEN),
    (DOCUMENTS, POSITIONS, HIDDEN),
    (DOCUMENTS, POSITIONS, HIDDEN),
)
Form = Callable[..., Tensor]


def weigh(queries: Tensor, keys: Tensor, mask: Tensor, heads: int, scale: float) -> Tensor:
    """Attention [B, h, L, T]; zeros in a document without positions."""
    q, k = (x.unflatten(-1, (heads, -1)) for x in (queries, keys))
    powers = torch.exp(torch.einsum("lhd,bthd->bhlt", q, k) * scale) * mask[:, None, None]
    return powers / powers.sum(-1, keepdim=True).clamp_min(1e-300)


def gather(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    heads: int = HEADS,
    scale: float = (HIDDEN / HEADS) ** -0.5,
) -> Tensor:
    """Attention-weighted means [B, L, H]."""
    weights = weigh(queries, keys, mask, heads, scale)
    return torch.einsum("bhlt,bthd->blhd", weights, values.unflatten(-1, (heads, -1))).flatten(2)


def plain_normed(q: Tensor, g: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    centred = gather(q, k, v, mask, 1, 1.0)
    centred = centred - centred.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) @ g[0]


def plain_log(queries: Tensor, keys: Tensor, mask: Tensor, heads: int, scale: float) -> Tensor:
    masked = ~mask[:, None].expand(-1, len(queries), -1)
    return (
        weigh(queries, keys, mask, heads, scale)
        .mean(1)
        .masked_fill(masked, 1.0)
        .log()
        .masked_fill(masked, -math.inf)
    )


FORMS: dict[str, tuple[Form, Form]] = {
    "label attention": (
        lambda q, g, k, v, mask, **given: label_attention(q, g, k, v, mask, heads=HEADS, **given),
        lambda q, g, k, v, mask: (gather(q, k, v, mask) * g).sum(-1),
    ),
    "one head": (
        single_head_attention,
        lambda q, g, k, v, mask: (gather(q, k, v, mask, 1, 1.0) * g).sum(-1),
    ),
    "normed": (
        lambda q, g, k, v, mask, **given: normed_attention(q, g[0], k, v, mask, **given),
        plain_normed,
    ),
}
ALL_FORMS = {
    **FORMS,
    "logarithm": (
        lambda q, g, k, v, mask: log_attention(q, k, mask, heads=HEADS) + 0 * (g.sum() + v.sum()),
        lambda q, g, k, v, mask: (
            plain_log(q, k, mask, HEADS, (HIDDEN / HEADS) ** -0.5) + 0 * (g.sum() + v.sum())
        ),
    ),
    "logarithm, all documents together": (
        lambda q, g, k, v, mask: (
            attention._TogetherLogAttention.apply(q, k, mask, HEADS) + 0 * (g.sum() + v.sum())
        ),
        lambda q, g, k, v, mask: (
            plain_log(q, k, mask, HEADS, (HIDDEN / HEADS) ** -0.5) + 0 * (g.sum() + v.sum())
        ),
    ),
    "logarithm of one head": (
        lambda q, g, k, v, mask: single_head_log_attention(q, k, mask) + 0 * (g.sum() + v.sum()),
        lambda q, g, k, v, mask: plain_log(q, k, mask, 1, 1.0) + 0 * (g.sum() + v.sum()),
    ),
    "states": (
        lambda q, g, k, v, mask: gather_states(q, k, v, mask, heads=HEADS) + 0 * g.sum(),
        lambda q, g, k, v, mask: gather(q, k, v, mask) + 0 * g.sum(),
    ),
    "states of one head": (
        lambda q, g, k, v, mask: single_head_states(q, k, v, mask) + 0 * g.sum(),
        lambda q, g, k, v, mask: gather(q, k, v, mask, 1, 1.0) + 0 * g.sum(),
    ),
}


@pytest.fixture(params=["blocks", "kernels"])
def form(request: pytest.FixtureRequest) -> None:
    """What holds for plain torch holds for the Triton kernels."""
    if request.param == "kernels":
        request.getfixturevalue("kernels")


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", ALL_FORMS)
@pytest.mark.parametrize("held", [None, 1, 1 << 18])
def test_a_form_equals_the_textbook_whatever_is_held_at_a_time(
    name: str, held: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bounds in (attention.LOG_ATTENTION_SCORES, attention.ATTENTION_NUMBERS) if held else ():
        monkeypatch.setitem(bounds, "cpu", held)
    ours, plain = ALL_FORMS[name]
    tensors = random_tensors(*LEAVES)
    assert_equal((ours(*tensors, MASK), tensors), (plain(*tensors, MASK), tensors), tolerance=1e-10)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("kept", [0, 10**6])
@pytest.mark.parametrize("elements", [1, 10**6])
def test_wanted_pairs_are_as_among_all_and_the_others_have_no_gradient(
    name: str, elements: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "SCORES_IN_MEMORY", kept)
    ours, plain = FORMS[name]
    tensors = random_tensors(*LEAVES)
    wanted = torch.rand(DOCUMENTS, LABELS, generator=torch.Generator().manual_seed(4)) < 0.4
    wanted[1] = True
    some, whole = ours(*tensors, MASK, elements=elements, wanted=wanted), plain(*tensors, MASK)
    upstream = upstream_of(whole, 0.7)  # some wanted pairs have no gradient
    torch.testing.assert_close(some[wanted], whole[wanted], rtol=0, atol=1e-12)
    expected = torch.autograd.grad(whole, tensors, upstream * wanted)
    for _ in range(2):
        for one, other in zip(
            torch.autograd.grad(some, tensors, upstream, retain_graph=True), expected, strict=True
        ):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ALL_FORMS)
def test_products_in_bf16_are_near_and_summed_in_fp32(name: str) -> None:
    ours, plain = ALL_FORMS[name]
    coarse = random_tensors(*LEAVES, dtype=torch.bfloat16)
    fine = exact(coarse)
    actual, expected = ours(*coarse, MASK), plain(*fine, MASK)
    finite = torch.isfinite(expected)
    assert actual.dtype == (torch.bfloat16 if name.startswith("states") else torch.float32)
    assert float((actual.double() - expected)[finite].detach().norm()) < 0.02 * float(
        expected[finite].detach().norm()
    )
    upstream = upstream_of(expected).masked_fill(~finite, 0)
    pairs = zip(
        torch.autograd.grad(actual, coarse, upstream.to(actual)),
        torch.autograd.grad(expected, fine, upstream),
        strict=True,
    )
    for one, other in pairs:
        assert one.dtype == torch.bfloat16
        assert float((one.double() - other).norm()) <= 0.03 * float(other.norm())


@pytest.mark.parametrize("name", ALL_FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("chosen", [False, True], ids=["all pairs", "some pairs"])
def test_numbers_and_gradients_do_not_depend_on_threads(
    threads: int, name: str, dtype: torch.dtype, chosen: bool
) -> None:
    if chosen and name not in FORMS:
        pytest.skip("scores all pairs")
    wanted = (
        {"wanted": torch.rand(DOCUMENTS, LABELS, generator=torch.Generator().manual_seed(0)) < 0.3}
        if chosen
        else {}
    )
    found = []
    for count in (1, threads):
        torch.set_num_threads(count)
        tensors = random_tensors(*LEAVES, dtype=dtype)
        result = ALL_FORMS[name][0](*tensors, MASK, **wanted)
        real = torch.where(torch.isfinite(result), result, 0.0)
        found.append(
            [real.detach(), *torch.autograd.grad(real, tensors, upstream_of(real).to(real))]
        )
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert found[0][0].any()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("scores", [1, 1 << 18])
def test_sharpened_states_are_those_of_each_factor(
    threads: int, count: int, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(attention.LOG_ATTENTION_SCORES, "cpu", scores)
    torch.set_num_threads(count)
    queries, _, keys, values = random_tensors(*LEAVES)
    factors = (1.0, 0.5, 0.0, 0.3, 0.25)
    found = gather_sharpened(queries, keys, values, MASK, heads=HEADS, factors=factors)
    single = single_head_sharpened(queries, keys, values, MASK, factors)
    for number, factor in enumerate(factors):
        torch.testing.assert_close(
            found[number], gather(queries * factor, keys, values, MASK), rtol=0, atol=1e-12
        )
        torch.testing.assert_close(
            single[number], gather(queries * factor, keys, values, MASK, 1, 1.0), rtol=0, atol=1e-12
        )
    assert torch.equal(
        gather_sharpened(queries, keys, values, MASK, heads=HEADS, factors=(0.0,))[0], found[2]
    )


def test_sharpened_holds_for_scores_whose_exponentials_are_no_numbers() -> None:
    """Several hundred, as a trained backbone gives them."""
    queries, _, keys, values = random_tensors(*LEAVES, dtype=torch.float32)
    queries, factors = 300 * queries, (0.5, 1.0)
    found = gather_sharpened(queries, keys, values, MASK, heads=HEADS, factors=factors)
    for number, factor in enumerate(factors):
        torch.testing.assert_close(
            found[number], gather_states(queries * factor, keys, values, MASK, heads=HEADS)
        )


@pytest.mark.parametrize(("keys", "values"), [(3, 6), (6, 3)])
@pytest.mark.parametrize("kernel", [False, True], ids=["blocks", "kernels"])
def test_keys_and_values_of_one_head_may_differ_in_size(
    keys: int, values: int, kernel: bool, request: pytest.FixtureRequest
) -> None:
    if kernel:
        request.getfixturevalue("kernels")
        request.getfixturevalue("monkeypatch").setattr(
            "plant_decoders.gathering.uses_triton", lambda device: True
        )
    tensors = random_tensors(
        (5, keys), (5, values), (DOCUMENTS, POSITIONS, keys), (DOCUMENTS, POSITIONS, values)
    )
    q, g, k, v = tensors
    means = torch.einsum("bhlt,btd->bld", weigh(q, k, MASK, 1, 1.0), v)
    assert_equal((single_head_attention(*tensors, MASK), tensors), ((means * g).sum(-1), tensors))
    torch.testing.assert_close(single_head_states(q, k, v, MASK), means, rtol=0, atol=1e-12)


@pytest.mark.parametrize("together", [False, True])
def test_underflowing_attention_keeps_its_logarithm(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "ONE_BY_ONE", set() if together else {"cpu"})
    queries, keys = torch.tensor([[200.0]], requires_grad=True), torch.tensor([[[0.0], [1.0]]])
    logs = log_attention(queries, keys, torch.ones(1, 2, dtype=torch.bool), heads=1)
    torch.testing.assert_close(logs, torch.tensor([[[-200.0, 0.0]]]))
    torch.testing.assert_close(
        torch.autograd.grad(logs[0, 0, 0], queries)[0], torch.tensor([[-1.0]])
    )


# how heads attend

PADDINGS = {
    "none": None,
    "shared": torch.tensor([[0.0] * 7 + [-torch.inf] * 2], dtype=torch.float64),
    "of each document": torch.tensor([0.0] * 7 + [-torch.inf] * 2, dtype=torch.float64).expand(
        3, 1, 1, 9
    ),
}


def textbook(
    queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None = None
) -> Tensor:
    scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
    return torch.softmax(scores if padding is None else scores + padding, -1) @ values


@pytest.mark.parametrize("scores", [1, 1 << 18], ids=["blocks of labels", "one block"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("way", [attend, attend_in_blocks])
def test_both_ways_to_attend_are_the_textbook(
    way: Form, padding: str, scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "BLOCK_SCORES", scores)
    tensors = random_tensors((3, 2, 70, 6), (3, 2, 9, 6), (3, 2, 9, 6))
    assert_equal(
        (way(*tensors, PADDINGS[padding]), tensors),
        (textbook(*tensors, PADDINGS[padding]), tensors),
    )


@pytest.mark.parametrize("amx", [False, True])
def test_attending_in_bf16_is_near(amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "has_amx", lambda: amx)
    coarse = random_tensors((2, 70, 6), (2, 9, 6), (2, 9, 6), dtype=torch.bfloat16)
    fine = exact(coarse)
    found = attend(*coarse)
    assert found.dtype == torch.bfloat16
    assert_equal(
        (found, coarse), (textbook(*fine), fine), tolerance=0.02, gradients=0.05, relative=0.03
    )


@pytest.mark.parametrize(
    ("dtype", "amx", "taken"),
    [(torch.bfloat16, False, True), (torch.bfloat16, True, False), (torch.float32, False, False)],
    ids=str,
)
def test_blocks_are_for_bf16_without_amx(
    dtype: torch.dtype, amx: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(attention, "has_amx", lambda: amx)
    monkeypatch.setattr(
        attention, "attend_in_blocks", lambda queries, *_: calls.append(1) or queries
    )
    attend(*random_tensors((2, 70, 6), (2, 9, 6), (2, 9, 6), dtype=dtype))
    assert bool(calls) == taken


def test_no_array_of_all_scores_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents come one by one, their labels in blocks, forward and backward."""
    sizes: set[int] = set()
    softmax = torch.softmax
    monkeypatch.setattr(
        torch, "softmax", lambda scores, dim: sizes.add(scores.numel()) or softmax(scores, dim=dim)
    )
    attend_in_blocks(*random_tensors((3, 2, 70, 6), (3, 2, 9, 6), (3, 2, 9, 6)))
    assert sizes == {2 * 70 * 9}
    monkeypatch.setattr(attention, "BLOCK_SCORES", 2 * 64 * 9)
    sizes.clear()
    attend_in_blocks(
        *random_tensors((2, 70, 6), (2, 9, 6), (2, 9, 6), dtype=torch.bfloat16)
    ).sum().backward()
    assert sizes == {2 * 64 * 9, 2 * 6 * 9}


# the literal network


def test_the_literal_network_is_the_paper_by_hand() -> None:
    """Q = 1, keys = values = (0, ln 3): attention (1/4, 3/4), gathered 3/4 ln 3; boosted by 2
    and 1, projected by 4, bias 5.
    """
    mixed = nn.MultiheadAttention(1, 1, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for weight in (mixed.in_proj_weight, mixed.out_proj.weight):
            weight.fill_(1.0)
        for bias in (mixed.in_proj_bias, mixed.out_proj.bias):
            bias.zero_()
    ones = torch.ones(1, 1, dtype=torch.float64)
    head = LiteralHead(
        queries=ones,
        attention=mixed,
        boost_scale=2 * ones,
        boost_shift=ones,
        projection=4 * ones[0],
        bias=5 * ones[0],
    )
    hidden = torch.tensor([[[0.0], [math.log(3.0)], [7.0]]], dtype=torch.float64)
    logits, weights = literal_logits(head, hidden, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(weights[0, 0], torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64))
    assert logits.item() == pytest.approx(4 * (1 + 2 * 0.75 * math.log(3.0)) + 5)


def fused_logits(head: LiteralHead, hidden: Tensor, mask: Tensor, elements: int | None) -> Tensor:
    """The same network through the fused form, from the same weights."""
    mixed = head.attention
    wq, wk, wv = mixed.in_proj_weight.chunk(3)
    bq, bk, bv = mixed.in_proj_bias.chunk(3)
    per_dimension = (
        pooling_matrix(hidden.shape[2], len(head.projection)).to(head.projection).T
        @ head.projection
    )
    scale = head.boost_scale * per_dimension
    queries, directions = nn.functional.linear(head.queries, wq, bq), scale @ mixed.out_proj.weight
    keys, values = nn.functional.linear(hidden, wk, bk), nn.functional.linear(hidden, wv, bv)
    logits = label_attention(
        queries, directions, keys, values, mask, heads=mixed.num_heads, elements=elements
    )
    return logits + scale @ mixed.out_proj.bias + head.boost_shift @ per_dimension + head.bias


@pytest.mark.parametrize(
    "pool", [1, 4, 5, 12, 17], ids=lambda p: f"pool{p}"
)  # 5 does not divide 12; 17 is wider than it
@pytest.mark.parametrize(("elements", "share"), [(1, 0.4), (100, 1.0), (10**6, 0.0), (None, 0.4)])
def test_the_fused_form_equals_the_literal_network(
    pool: int, elements: int | None, share: float, request: pytest.FixtureRequest
) -> None:
    if elements is None:
        request.getfixturevalue("kernels")
    mixed = nn.MultiheadAttention(12, 4, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter, value in zip(
            mixed.parameters(),
            random_tensors(*(p.shape for p in mixed.parameters()), seed=1),
            strict=True,
        ):
            parameter.copy_(0.5 * value)
    queries, scale, shift, projection, bias, hidden = random_tensors(
        (7, 12), (7, 12), (7, 12), (pool,), (7,), (3, 9, 12), seed=pool
    )
    head = LiteralHead(
        queries=queries,
        attention=mixed,
        boost_scale=scale,
        boost_shift=shift,
        projection=projection,
        bias=bias,
    )
    mask = torch.ones(3, 9, dtype=torch.bool)
    mask[0, 5:] = mask[1, [0, 4]] = False
    leaves = [queries, scale, shift, projection, bias, hidden, *mixed.parameters()]
    expected = literal_logits(head, hidden, mask)[0]
    assert_equal(
        (fused_logits(head, hidden, mask, elements), leaves),
        (expected, leaves),
        upstream_of(expected, share),
        tolerance=1e-10,
    )


@pytest.mark.parametrize(
    ("hidden", "bins"), [(12, 4), (12, 5), (384, 128), (100, 128), (7, 7), (9, 1)]
)
def test_the_pooling_matrix_is_adaptive_average_pooling(hidden: int, bins: int) -> None:
    (x,) = random_tensors((3, hidden))
    torch.testing.assert_close(
        x @ pooling_matrix(hidden, bins).T, nn.functional.adaptive_avg_pool1d(x, bins)
    )


# promises of the fused form


@pytest.mark.usefixtures("form")
def test_golden_numbers() -> None:
    every = torch.ones(1, 2, dtype=torch.bool)
    single = (
        torch.tensor([[5.0, -3.0]]),
        torch.tensor([[2.0, 1.0]]),
        torch.tensor([[[1.0, 1.0]]]),
        torch.tensor([[[3.0, 4.0]]]),
    )
    assert (
        label_attention(*single, every[:, :1], heads=2).item() == 10.0
    )  # one position: the plain product
    # one head of width 1: scores 0 and ln 3, so weights 1/4 and 3/4; values 2 and 6 -> 5
    two = (
        torch.tensor([[1.0]]),
        torch.tensor([[1.0]]),
        torch.tensor([[[0.0], [math.log(3.0)]]]),
        torch.tensor([[[2.0], [6.0]]]),
    )
    torch.testing.assert_close(label_attention(*two, every, heads=1), torch.tensor([[5.0]]))


@pytest.mark.usefixtures("form")
def test_padding_changes_nothing() -> None:
    q, g, k, v = random_tensors((7, 12), (7, 12), (3, 9, 12), (3, 9, 12), dtype=torch.float32)
    mask = torch.ones(3, 9, dtype=torch.bool)
    padded_k, padded_v = (torch.cat([x, torch.full((3, 4, 12), 1e4)], 1) for x in (k, v))
    padded_mask = torch.cat([mask, torch.zeros(3, 4, dtype=torch.bool)], 1)
    assert torch.equal(
        label_attention(q, g, k, v, mask, heads=4),
        label_attention(q, g, padded_k, padded_v, padded_mask, heads=4),
    )


@pytest.mark.usefixtures("form")
def test_order_of_documents_and_labels_permutes_the_result() -> None:
    q, g, k, v = random_tensors((7, 12), (7, 12), (4, 9, 12), (4, 9, 12))
    documents, labels = (
        torch.tensor([2, 0, 3, 1]),
        torch.randperm(7, generator=torch.Generator().manual_seed(1)),
    )
    expected = label_attention(q, g, k, v, MASK, heads=4)[documents][:, labels]
    actual = label_attention(
        q[labels], g[labels], k[documents], v[documents], MASK[documents], heads=4
    )
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("form")
def test_a_document_without_positions_gives_zeros_and_huge_scores_stay_finite() -> None:
    tensors = random_tensors((7, 12), (7, 12), (4, 9, 12), (4, 9, 12), dtype=torch.float32)
    logits = label_attention(*tensors, MASK, heads=4)
    assert not logits[3].any()
    gradients = torch.autograd.grad(logits.sum(), tensors)
    assert all(torch.isfinite(x).all() for x in gradients)
    assert not gradients[2][3].any()
    q, g, k, v = tensors
    huge = label_attention(q * 1e4, g, k * 1e4, v, MASK, heads=4)
    assert torch.isfinite(huge).all()
    assert torch.isfinite(torch.autograd.grad(huge.sum(), q)[0]).all()


@pytest.mark.parametrize("processors", [1, 8, 10_000])
def test_labels_in_groups_are_the_same_labels(
    monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    """Where processors outnumber heads."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: processors)
    tensors = random_tensors((7, 12), (7, 12), (4, 9, 12), (4, 9, 12))
    q, g, k, v = tensors
    assert_equal(
        (label_attention(*tensors, MASK, heads=HEADS), tensors),
        ((gather(q, k, v, MASK) * g).sum(-1), tensors),
    )


def test_products_in_bf16_come_in_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every other shape of them a processor's library would keep machine code, a GB in the
    end.
    """
    shapes = set()

    def spy(q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None) -> Tensor:
        shapes.add((q.shape[-2], k.shape[-2]))
        return attend(q, k, v, padding)

    monkeypatch.setattr(attention, "attend", spy)
    for labels, positions in [(3, 5), (64, 64), (65, 63), (130, 70), (200, 128)]:
        leaves = (labels, 12), (labels, 12), (1, positions, 12), (1, positions, 12)
        tensors = random_tensors(*leaves, dtype=torch.bfloat16)
        logits = label_attention(*tensors, torch.ones(1, positions, dtype=torch.bool), heads=4)
        torch.autograd.grad(logits, tensors, upstream_of(logits, 0.5).float())
    assert shapes == {(64, 64), (128, 64), (128, 128), (192, 128), (256, 128)}


def test_no_more_labels_are_gathered_at_a_time_than_the_bound_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gather_some, sizes = attention._gather, list[int]()
    monkeypatch.setattr(
        attention, "_gather", lambda q, *given: sizes.append(len(q)) or gather_some(q, *given)
    )
    tensors = random_tensors((200, 12), (200, 12), (1, 9, 12), (1, 9, 12))
    label_attention(
        *tensors, torch.ones(1, 9, dtype=torch.bool), heads=4, elements=64 * 12
    ).sum().backward()
    assert sorted(sizes) == [8, 8, 64, 64, 64, 64, 64, 64]  # threads take them in any order


# the Triton kernels

CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
SHAPES = {  # labels, heads, size of a head, documents, positions
    "several tiles of labels and positions": (70, 2, 20, 2, 75),
    "a head that fills its tile": (66, 1, 16, 2, 130),
    "documents with gradients for few and for many labels": (40, 1, 8, 4, 10),
    "a head too wide to be fused": (5, 1, 260, 2, 35),
    "heads of one position": (3, 3, 1, 1, 2),
    "one label, one position": (1, 1, 4, 1, 1),
}
shapes = pytest.mark.parametrize("shape", SHAPES)
WAYS = {"products": set[torch.dtype](), "fused": {torch.bfloat16, torch.float32}}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which form the kernels take; labels in several blocks."""
    from plant_decoders import attention_kernels

    monkeypatch.setattr(attention_kernels, "FUSED_TYPES", WAYS[request.param])
    monkeypatch.setattr(attention_kernels, "LABELS_WALKED", 64)
    monkeypatch.setattr(attention_kernels, "SCORES_HELD", 1)
    return str(request.param)


def draw(shape: str, dtype: torch.dtype) -> tuple[list[Tensor], Tensor, int]:
    """Inputs, a mask with holes, in which a document is all padding if there are two, and the
    number of heads.
    """
    labels, heads, size, documents, positions = SHAPES[shape]
    inputs = random_tensors(
        *[(labels, heads * size)] * 2,
        *[(documents, positions, heads * size)] * 2,
        seed=labels,
        dtype=dtype,
    )
    mask = torch.rand(documents, positions, generator=torch.Generator().manual_seed(labels)) < 0.7
    mask[0, 0], mask[1:2] = True, False
    if documents > 1:
        mask[0, : positions // 2] = False  # the first tile of positions may hold none
        mask[0, -1] = True
    for text in inputs[2:]:
        text.data[~mask] = torch.nan  # padding is not read
    return inputs, mask, heads


def assert_equals_blocks(
    shape: str,
    dtype: torch.dtype,
    device: str,
    tolerance: float,
    gradients: float,
    share: float = 0.4,
) -> None:
    """The chosen form, of tensors whose rows lie apart, against that of plain torch; a share of
    the logits has a gradient.
    """
    inputs, mask, heads = draw(shape, dtype)
    fine, placed = (
        exact(inputs),
        [x.detach().to(device).mT.contiguous().mT.requires_grad_() for x in inputs],
    )
    expected = _LabelAttention.apply(*fine, mask, heads, 1 << 20, None)  # type: ignore[no-untyped-call]
    actual = label_attention(*placed, mask.to(device).mT.contiguous().mT, heads=heads)
    assert actual.dtype == torch.promote_types(dtype, torch.float32)
    upstream = upstream_of(expected, share).float()
    upstream[:, 0] = share  # labels that only fill up are label 0, which must not count twice
    assert_equal(
        (actual.mT, placed),
        (expected.mT, fine),
        upstream.mT,
        tolerance=tolerance,
        gradients=gradients,
        relative=gradients,
    )


@pytest.mark.usefixtures("kernels", "way")
@shapes
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-5)], ids=str
)
def test_kernels_equal_the_blocks(
    shape: str, dtype: torch.dtype, tolerance: float, share: float
) -> None:
    assert_equals_blocks(shape, dtype, "cpu", tolerance, tolerance, share)


@pytest.fixture
def bf16_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter keeps bf16 as bits and multiplies them as integers; here they are widened
    first, which is exact.
    """
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    multiply = interpreter.InterpreterBuilder.create_dot

    def widen(x: Any) -> Any:
        return interpreter.TensorHandle(
            (x.data.astype("uint32") << 16).view("float32"), interpreter.tl.float32
        )

    monkeypatch.setattr(
        interpreter.InterpreterBuilder,
        "create_dot",
        lambda self, a, b, *rest: multiply(self, widen(a), widen(b), *rest),
    )


@pytest.mark.usefixtures("kernels", "bf16_products", "way")
@shapes
def test_kernels_multiply_bf16_as_it_is_and_sum_in_fp32(shape: str) -> None:
    assert_equals_blocks(
        shape, torch.bfloat16, "cpu", 1e-5, 0.02
    )  # nothing is rounded on the way forward


@pytest.mark.usefixtures("kernels")
def test_kernels_visit_only_labels_that_are_wanted_and_that_the_loss_looked_at(way: str) -> None:
    inputs, mask, heads = draw(
        "several tiles of labels and positions", torch.float32 if way == "fused" else torch.float64
    )
    queries, directions, keys, values = (x.detach() for x in inputs)
    few = [
        x.requires_grad_() for x in (queries[:30].clone(), directions[:30].clone(), keys, values)
    ]
    logits = label_attention(*few, mask, heads=heads)
    upstream, wanted = upstream_of(logits, 0.7).to(logits), torch.arange(70).expand(2, -1) < 25
    expected = torch.autograd.grad(logits, few, upstream * wanted[:, :30])
    queries[30:] = torch.nan  # would spoil every number that it entered
    whole = [queries.requires_grad_(), directions.requires_grad_(), keys, values]
    some = label_attention(*whole, mask, heads=heads, wanted=wanted)
    torch.testing.assert_close(some[:, :25], logits[:, :25], rtol=0, atol=1e-6)
    assert torch.isfinite(some).all()
    actual = torch.autograd.grad(some, whole, nn.functional.pad(upstream, (0, 40)))
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours[: len(theirs)], theirs, rtol=1e-5, atol=1e-5)
        assert not ours[len(theirs) :].any()


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("room", [100_000, 70_000, 20_000])
def test_cards_with_less_shared_memory_take_smaller_tiles_or_the_products(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plant_decoders import attention_kernels as kernels

    taken = set()

    def refuse(name: str) -> Callable[..., Any]:
        real = getattr(kernels, name)

        def run(batch: Any, tiles: Any, *given: Any) -> Any:
            for tile in [tiles] if isinstance(tiles, kernels.Tile) else tiles:
                needed = 2 * 2 * 64 * (tile.kept + tile.stages * tile.taken)
                if needed > room:
                    raise kernels.OutOfResources(needed, room, "shared memory")
                taken.add(tile)
            return real(batch, tiles, *given)

        return run

    for name in ("_average_fused", "_pull_fused"):
        monkeypatch.setattr(kernels, name, refuse(name))
    monkeypatch.setattr(kernels, "FUSED_TYPES", {torch.float32})
    assert_equals_blocks("several tiles of labels and positions", torch.float32, "cpu", 2e-5, 2e-5)
    assert {tile in kernels.FUSED[64] for tile in taken} == {
        100_000: {True},
        70_000: {True, False},
        20_000: set[bool](),
    }[room]


compiled = pytest.mark.skipif(not CARD, reason="no graphics card, or Triton's interpreter is on")


@compiled
@pytest.mark.parametrize(
    "shape",
    [
        "several tiles of labels and positions",
        "a head too wide to be fused",
        "one label, one position",
    ],
)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-10), (torch.float32, 1e-4), (torch.bfloat16, 0.02)],
    ids=str,
)
def test_compiled_kernels_equal_the_blocks(
    shape: str, dtype: torch.dtype, tolerance: float
) -> None:
    assert_equals_blocks(shape, dtype, "cuda", tolerance, tolerance)


@compiled
@pytest.mark.parametrize("size", [48, 64, 128, 256, 384])
def test_compiled_kernels_of_every_width_equal_the_blocks(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SHAPES, "drawn", (2100, 2, size, 3, 300))
    for share in (0.1, 1.0):
        assert_equals_blocks("drawn", torch.bfloat16, "cuda", 0.02, 0.05, share)


@compiled
@pytest.mark.parametrize("size", [48, 384])
def test_compiled_kernels_score_wanted_pairs_as_among_all(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SHAPES, "drawn", (2100, 2, size, 3, 300))
    inputs, mask, heads = draw("drawn", torch.bfloat16)
    placed, wanted = (
        [x.detach().cuda().requires_grad_() for x in inputs],
        (torch.rand(3, 2100) < 0.2).cuda(),
    )
    some, whole = (
        label_attention(*placed, mask.cuda(), heads=heads, wanted=pairs) for pairs in (wanted, None)
    )
    torch.testing.assert_close(some[wanted], whole[wanted], rtol=1e-3, atol=1e-3)
    upstream = upstream_of(whole).to(whole) * wanted
    for one, other in zip(
        torch.autograd.grad(some, placed, upstream),
        torch.autograd.grad(whole, placed, upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)
