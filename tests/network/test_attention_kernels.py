"""The Triton kernels equal the blocks of plain torch where tiles, heads, types and masks are awkward, and compile for graphics cards."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from torch import Tensor

from plant_cli.network.attention import _LabelAttention, label_attention

CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
SHAPES = {  # labels, heads, size of a head, documents, positions
    "several tiles of labels and places": (70, 2, 20, 2, 75),
    "a head wider than its gradients' part": (5, 1, 140, 2, 35),
    "heads of one place": (3, 3, 1, 1, 2),
    "one label, one place": (1, 1, 4, 1, 1),
}


def draw(labels: int, heads: int, size: int, documents: int, positions: int, dtype: torch.dtype) -> tuple[list[Tensor], Tensor, Tensor]:
    """Inputs, a mask with holes, a document that is all padding if there are two, and a gradient on two of five cells."""
    generator = torch.Generator().manual_seed(labels)
    shapes = [(labels, heads * size)] * 2 + [(documents, positions, heads * size)] * 2
    inputs = [torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]
    mask = torch.rand(documents, positions, generator=generator) < 0.7
    mask[0, 0], mask[1:2] = True, False
    if documents > 1:
        mask[0, : positions // 2] = False  # the first tile of places may hold none
        mask[0, -1] = True
    upstream = torch.randn(documents, labels, generator=generator) * (torch.rand(documents, labels, generator=generator) < 0.4)
    return inputs, mask, upstream


def by_blocks(inputs: list[Tensor], mask: Tensor, heads: int) -> Tensor:
    """The form of plain torch, whatever the choice between forms says."""
    result: Tensor = _LabelAttention.apply(*inputs, mask, heads, 1 << 20)  # type: ignore[no-untyped-call]
    return result


def assert_same(actual: tuple[Tensor, list[Tensor]], expected: tuple[Tensor, list[Tensor]], upstream: Tensor, **tolerance: float) -> None:
    """Values and gradients, each result with the inputs that it came from."""
    torch.testing.assert_close(actual[0].double(), expected[0].double(), **tolerance)
    gradients = [torch.autograd.grad(result, inputs, upstream.to(result)) for result, inputs in (actual, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), **tolerance)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_equals_the_blocks(shape: tuple[int, ...], dtype: torch.dtype, tolerance: float) -> None:
    inputs, mask, upstream = draw(*shape, dtype)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    actual, expected = label_attention(*inputs, mask, heads=shape[1]), by_blocks(exact, mask, shape[1])
    assert_same((actual, inputs), (expected, exact), upstream, rtol=tolerance, atol=tolerance)


@pytest.fixture
def bf16_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter keeps bf16 as bits and multiplies them as integers; here they are widened first, which is exact."""
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    multiply = interpreter.InterpreterBuilder.create_dot

    def widen(x: Any) -> Any:
        bits = x.data.astype("uint32") << 16
        return interpreter.TensorHandle(bits.view("float32"), interpreter.tl.float32)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", lambda self, a, b, *rest: multiply(self, widen(a), widen(b), *rest))


@pytest.mark.usefixtures("kernels", "bf16_products")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_bf16_inputs_are_multiplied_as_they_are_and_summed_in_fp32(shape: tuple[int, ...]) -> None:
    inputs, mask, upstream = draw(*shape, torch.bfloat16)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    actual, expected = label_attention(*inputs, mask, heads=shape[1]), by_blocks(exact, mask, shape[1])
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)  # nothing is rounded on the way forward
    assert_same((actual, inputs), (expected, exact), upstream, rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("kernels")
def test_the_backward_pass_visits_only_labels_that_the_loss_looked_at() -> None:
    inputs, mask, upstream = draw(*SHAPES["several tiles of labels and places"], torch.float64)
    upstream[:, 40:] = 0
    queries, directions, keys, values = (x.detach() for x in inputs)
    few = [x.requires_grad_() for x in (queries[:40].clone(), directions[:40].clone(), keys, values)]
    expected = torch.autograd.grad(label_attention(*few, mask, heads=2), few, upstream[:, :40].double())
    queries[40:] = torch.nan  # would spoil every gradient that it entered
    whole = [queries.requires_grad_(), directions.requires_grad_(), keys, values]
    actual = torch.autograd.grad(label_attention(*whole, mask, heads=2), whole, upstream.double())
    for ours, theirs in zip(actual[:2], expected[:2], strict=True):
        torch.testing.assert_close(ours[:40], theirs, rtol=0, atol=1e-12)
        assert not ours[40:].any()
    for ours, theirs in zip(actual[2:], expected[2:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.skipif(not CARD, reason="no graphics card, or Triton's interpreter is on")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4), (torch.bfloat16, 0.02)], ids=str)
def test_compiled_kernels_equal_the_blocks(shape: tuple[int, ...], dtype: torch.dtype, tolerance: float) -> None:
    inputs, mask, upstream = draw(*shape, dtype)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    placed = [x.detach().cuda().requires_grad_() for x in inputs]
    logits = label_attention(*placed, mask.cuda(), heads=shape[1])
    gradients = torch.autograd.grad(logits, placed, upstream.to(logits))
    expected = by_blocks(exact, mask, shape[1])
    torch.testing.assert_close(logits.cpu().double(), expected, rtol=tolerance, atol=tolerance)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, exact, upstream.double()), strict=True):
        torch.testing.assert_close(ours.cpu().double(), theirs, rtol=tolerance, atol=tolerance)
