"""The fused label attention, in both its forms, equals the literal network and keeps its numerical promises."""

import math

import pytest
import torch
from torch import Tensor, nn

from plant_cli.network import attention as fused
from plant_cli.network.attention import LiteralHead, label_attention, literal_logits, pooling_matrix

LABELS, HIDDEN, HEADS, POSITIONS = 7, 12, 4, 9


@pytest.fixture(params=["blocks", "kernels"])
def form(request: pytest.FixtureRequest) -> None:
    """What holds for plain torch holds for the Triton kernels."""
    if request.param == "kernels":
        request.getfixturevalue("kernels")


def random_head(pool: int, generator: torch.Generator) -> LiteralHead:
    """Random weights everywhere, biases included."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    attention = nn.MultiheadAttention(HIDDEN, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.5)
    return LiteralHead(
        queries=draw(LABELS, HIDDEN),
        attention=attention,
        boost_scale=draw(LABELS, HIDDEN),
        boost_shift=draw(LABELS, HIDDEN),
        projection=draw(pool),
        bias=draw(LABELS),
    )


def fused_logits(head: LiteralHead, hidden: Tensor, mask: Tensor, elements: int | None) -> Tensor:
    """The same network through the fused form, from the same weights."""
    mixed = head.attention
    wq, wk, wv = mixed.in_proj_weight.chunk(3)
    bq, bk, bv = mixed.in_proj_bias.chunk(3)
    per_place = pooling_matrix(HIDDEN, len(head.projection)).to(head.projection).T @ head.projection
    scale = head.boost_scale * per_place
    logits = label_attention(
        nn.functional.linear(head.queries, wq, bq),
        scale @ mixed.out_proj.weight,
        nn.functional.linear(hidden, wk, bk),
        nn.functional.linear(hidden, wv, bv),
        mask,
        heads=HEADS,
        elements=elements,
    )
    return logits + scale @ mixed.out_proj.bias + head.boost_shift @ per_place + head.bias


def inputs(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    hidden = torch.randn(3, POSITIONS, HIDDEN, generator=generator, dtype=torch.float64).requires_grad_()
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    mask[0, 5:] = False  # padding at the end
    mask[1, [0, 4]] = False  # special positions inside
    return hidden, mask


@pytest.mark.parametrize("pool", [1, 4, 5, 12, 17], ids=lambda p: f"pool{p}")  # 5 does not divide 12; 17 is wider than it
@pytest.mark.parametrize("elements", [1, 100, 10**6])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_equals_the_literal_network(pool: int, elements: int, share: float) -> None:
    assert_equals_literal(pool, elements, share)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("pool", "share"), [(5, 0.4), (12, 1.0), (17, 0.0)])
def test_the_kernels_equal_the_literal_network(pool: int, share: float) -> None:
    assert_equals_literal(pool, None, share)


def assert_equals_literal(pool: int, elements: int | None, share: float) -> None:
    """Values and all gradients, for a loss that looks at a share of the elements."""
    generator = torch.Generator().manual_seed(pool)
    head, (hidden, mask) = random_head(pool, generator), inputs(generator)
    weights = [head.queries, head.boost_scale, head.boost_shift, head.projection, head.bias, hidden, *head.attention.parameters()]
    expected, actual = literal_logits(head, hidden, mask)[0], fused_logits(head, hidden, mask, elements)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10)
    upstream = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    upstream *= torch.rand(expected.shape, generator=generator) < share
    gradients = torch.autograd.grad(actual, weights, upstream), torch.autograd.grad(expected, weights, upstream)
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("form")
def test_a_single_position_is_the_plain_product() -> None:
    q, g = torch.tensor([[5.0, -3.0]]), torch.tensor([[2.0, 1.0]])
    k, v = torch.tensor([[[1.0, 1.0]]]), torch.tensor([[[3.0, 4.0]]])
    assert label_attention(q, g, k, v, torch.ones(1, 1, dtype=torch.bool), heads=2).item() == 10.0


@pytest.mark.usefixtures("form")
def test_golden_number() -> None:
    # one head of width 1: scores 0 and ln 3, so weights 1/4 and 3/4; values 2 and 6 -> 5
    q, g = torch.tensor([[1.0]]), torch.tensor([[1.0]])
    k, v = torch.tensor([[[0.0], [math.log(3.0)]]]), torch.tensor([[[2.0], [6.0]]])
    torch.testing.assert_close(label_attention(q, g, k, v, torch.ones(1, 2, dtype=torch.bool), heads=1), torch.tensor([[5.0]]))


def random_tensors(dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(LABELS, HIDDEN), (LABELS, HIDDEN), (3, POSITIONS, HIDDEN), (3, POSITIONS, HIDDEN)]
    return [torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("kept", [0, 10**6])
@pytest.mark.parametrize("elements", [1, 10**6])
def test_wanted_pairs_equal_all_of_them_and_the_others_have_no_gradient(elements: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "KEPT", kept)
    tensors = random_tensors(torch.float64)
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    mask[0, 4:] = False
    wanted = torch.zeros(3, LABELS, dtype=torch.bool)
    wanted[0, [1, 5]] = wanted[2] = True
    upstream = torch.randn(3, LABELS, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    whole = label_attention(*tensors, mask, heads=HEADS)
    some = label_attention(*tensors, mask, heads=HEADS, elements=elements, wanted=wanted)
    torch.testing.assert_close(some[wanted], whole[wanted], rtol=0, atol=1e-12)
    upstream[2, 3] = 0  # wanted, but without a gradient
    expected = torch.autograd.grad(whole, tensors, upstream * wanted)
    for _ in range(2):
        for ours, theirs in zip(torch.autograd.grad(some, tensors, upstream, retain_graph=True), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("form")
def test_padding_changes_nothing() -> None:
    q, g, k, v = random_tensors(torch.float32)
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    padded_k, padded_v = (torch.cat([x, torch.full((3, 4, HIDDEN), 1e4)], 1) for x in (k, v))
    padded_mask = torch.cat([mask, torch.zeros(3, 4, dtype=torch.bool)], 1)
    assert torch.equal(label_attention(q, g, k, v, mask, heads=HEADS), label_attention(q, g, padded_k, padded_v, padded_mask, heads=HEADS))


@pytest.mark.usefixtures("form")
def test_order_of_documents_and_labels_permutes_the_result() -> None:
    q, g, k, v = random_tensors(torch.float64)
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    documents, labels = torch.tensor([2, 0, 1]), torch.randperm(LABELS, generator=torch.Generator().manual_seed(1))
    expected = label_attention(q, g, k, v, mask, heads=HEADS)[documents][:, labels]
    actual = label_attention(q[labels], g[labels], k[documents], v[documents], mask, heads=HEADS)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("form")
def test_a_document_without_positions_gives_zeros_and_no_gradient() -> None:
    q, g, k, v = random_tensors(torch.float32)
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    mask[1] = False
    logits = label_attention(q, g, k, v, mask, heads=HEADS)
    assert torch.equal(logits[1], torch.zeros(LABELS))
    gradients = torch.autograd.grad(logits.sum(), (q, g, k, v))
    assert all(torch.isfinite(x).all() for x in gradients)
    assert not gradients[2][1].any()


@pytest.mark.usefixtures("form")
def test_huge_scores_stay_finite() -> None:
    q, g, k, v = random_tensors(torch.float32)
    logits = label_attention(q * 1e4, g, k * 1e4, v, torch.ones(3, POSITIONS, dtype=torch.bool), heads=HEADS)
    assert torch.isfinite(logits).all()
    assert torch.isfinite(torch.autograd.grad(logits.sum(), q)[0]).all()


def test_half_precision_stays_near_and_returns_fp32() -> None:
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    exact, coarse = random_tensors(torch.float32), random_tensors(torch.bfloat16)
    expected, actual = label_attention(*exact, mask, heads=HEADS), label_attention(*coarse, mask, heads=HEADS)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, rtol=0.05, atol=0.1)
    for ours, theirs in zip(torch.autograd.grad(actual.sum(), coarse), torch.autograd.grad(expected.sum(), exact), strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.float(), theirs, rtol=0.1, atol=0.15)


def test_gradcheck() -> None:
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    mask[0, 6:] = False
    assert torch.autograd.gradcheck(lambda *x: label_attention(*x, mask, heads=HEADS, elements=50), random_tensors(torch.float64))


@pytest.mark.parametrize("processors", [1, 8, 10_000])
def test_labels_in_groups_are_the_same_labels(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    """Where processors outnumber heads."""
    mask = torch.ones(3, POSITIONS, dtype=torch.bool)
    inputs, upstream = random_tensors(torch.float64), torch.randn(3, LABELS, dtype=torch.float64)
    expected = label_attention(*inputs, mask, heads=HEADS)
    gradients = torch.autograd.grad(expected, inputs, upstream)
    monkeypatch.setattr(torch, "get_num_threads", lambda: processors)
    actual = label_attention(*inputs, mask, heads=HEADS)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(actual, inputs, upstream), gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_products_in_bf16_come_in_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every other shape of them a processor's library would keep machine code, a GB in the end."""
    shapes, attend = set(), fused.attend

    def spy(q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None) -> Tensor:
        shapes.add((q.shape[-2], k.shape[-2]))
        return attend(q, k, v, padding)

    monkeypatch.setattr(fused, "attend", spy)
    draw = torch.Generator().manual_seed(0)
    for labels, places in [(3, 5), (64, 64), (65, 63), (130, 70), (200, 128)]:
        q, g = (torch.randn(labels, HIDDEN, generator=draw).bfloat16().requires_grad_() for _ in range(2))
        k, v = (torch.randn(1, places, HIDDEN, generator=draw).bfloat16().requires_grad_() for _ in range(2))
        upstream = (torch.rand(1, labels, generator=draw) < 0.5).float()
        torch.autograd.grad(label_attention(q, g, k, v, torch.ones(1, places, dtype=torch.bool), heads=HEADS), (q, k), upstream)
    assert shapes == {(64, 64), (128, 64), (128, 128), (192, 128), (256, 128)}


def test_no_more_labels_are_gathered_at_a_time_than_the_bound_says(monkeypatch: pytest.MonkeyPatch) -> None:
    gather, sizes = fused._gather, list[int]()
    monkeypatch.setattr(fused, "_gather", lambda q, *given: sizes.append(len(q)) or gather(q, *given))
    queries, directions = torch.randn(2, 200, HIDDEN).requires_grad_()
    keys, values = torch.randn(2, 1, POSITIONS, HIDDEN)
    mask = torch.ones(1, POSITIONS, dtype=torch.bool)
    label_attention(queries, directions, keys, values, mask, heads=HEADS, elements=64 * HIDDEN).sum().backward()
    assert sorted(sizes) == [8, 8, 64, 64, 64, 64, 64, 64]  # threads take them in any order


@pytest.mark.parametrize("kept", [0, 10**6])
def test_wanted_pairs_in_bf16_are_summed_in_fp32_as_all_are(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "KEPT", kept)
    tensors, mask = random_tensors(torch.bfloat16), torch.ones(3, POSITIONS, dtype=torch.bool)
    wanted = torch.rand(3, LABELS, generator=torch.Generator().manual_seed(1)) < 0.6
    whole, some = (label_attention(*tensors, mask, heads=HEADS, wanted=given) for given in (None, wanted))
    assert some.dtype == torch.float32
    torch.testing.assert_close(some[wanted], whole[wanted], rtol=1e-6, atol=1e-6)
