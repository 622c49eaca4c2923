"""Stage 2 losses: golden numbers, equality with the plain formula and with 'forward all, mask, backward'."""

import math

import pytest
import torch
from plant_losses import AsymmetricOptions, BceOptions, FocalOptions
from plant_losses.label_losses import Asymmetric, Bce, Focal, PairLoss
from torch import Tensor

from plant_cli.api import LabelLoss

LOGIT, P = math.log(3), 0.75  # sigmoid(ln 3) = 3/4
ALL = {"hard_negatives": 0, "normaliser": "labels"}


def value(loss: PairLoss, target: float, logit: float = LOGIT) -> float:
    return loss(torch.tensor([[logit]], dtype=torch.float64), torch.tensor([[target]])).item()


@pytest.mark.parametrize(
    ("smoothing", "positive", "negative"), [("off", 1.0, 0.0), ("positive", 0.9, 0.0), ("literal", 0.9, 0.1), ("symmetric", 0.95, 0.05)]
)
def test_golden_focal(smoothing: str, positive: float, negative: float) -> None:
    loss = Focal(FocalOptions(smoothing=smoothing, **ALL))
    for target, smooth in ((1.0, positive), (0.0, negative)):
        expected = -smooth * (1 - P) ** 2 * math.log(P) - (1 - smooth) * P**2 * math.log(1 - P)
        assert value(loss, target) == pytest.approx(expected, abs=1e-12)


def test_golden_asymmetric_and_bce() -> None:
    asymmetric = Asymmetric(AsymmetricOptions(gamma_positive=1, **ALL))
    assert value(asymmetric, 1.0) == pytest.approx(-(1 - P) * math.log(P), abs=1e-12)
    assert value(asymmetric, 0.0) == pytest.approx(-((P - 0.05) ** 4) * math.log(1 - P + 0.05), abs=1e-12)
    assert value(asymmetric, 0.0, logit=-5.0) == pytest.approx(0, abs=1e-30)  # below the clip: an easy negative costs nothing
    assert value(Bce(BceOptions()), 1.0) == pytest.approx(-math.log(P), abs=1e-12)


def test_focal_without_focus_and_smoothing_is_bce() -> None:
    logits, targets = cells()
    plain = Focal(FocalOptions(gamma=0, smoothing="off", **ALL))(logits, targets)
    torch.testing.assert_close(plain, Bce(BceOptions())(logits, targets))
    torch.testing.assert_close(Asymmetric(AsymmetricOptions(gamma_negative=0, clip=0, **ALL))(logits, targets), plain)


def cells(documents: int = 4, labels: int = 40) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(documents, labels, generator=generator, dtype=torch.float64).mul_(2).requires_grad_()
    return logits, (torch.rand(documents, labels, generator=generator) < 0.1).double()


LOSSES = [Focal(FocalOptions(hard_negatives=5, random_negatives=3, normaliser=n)) for n in ("selected", "labels", "positives")]
LOSSES += [Bce(BceOptions(hard_negatives=7)), Asymmetric(AsymmetricOptions(hard_negatives=6, random_negatives=2))]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}-{loss.normaliser}")
def test_equals_forward_all_mask_backward(loss: PairLoss) -> None:
    logits, targets = cells()
    selected = loss.select(logits, targets, torch.Generator().manual_seed(0))
    every = loss.pairs(logits, targets) * selected
    divisor = {"selected": selected.sum(1), "labels": torch.full((4,), 40), "positives": targets.sum(1).clamp(min=1)}[loss.normaliser]
    expected = (every.sum(1) / divisor).mean()
    actual = loss(logits, targets, selected)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad(x, logits)[0] for x in (actual, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
    assert not gradients[0][~selected].any()


@pytest.mark.parametrize(
    "loss",
    [
        Focal(FocalOptions(**ALL)),
        Bce(BceOptions()),
        Asymmetric(AsymmetricOptions(clip=0, **ALL)),
        Asymmetric(AsymmetricOptions(gamma_negative=0.5, **ALL)),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_extreme_logits_stay_finite(loss: PairLoss) -> None:
    logits = torch.tensor([[-1e4, -90.0, 0.0, 90.0, 1e4]] * 2, requires_grad=True)
    targets = torch.tensor([[1.0] * 5, [0.0] * 5])
    result = loss(logits, targets)
    assert torch.isfinite(result)
    assert torch.isfinite(torch.autograd.grad(result, logits)[0]).all()


def test_half_precision_logits_are_computed_in_fp32() -> None:
    logits, targets = cells()
    coarse = logits.detach().bfloat16()
    loss = Bce(BceOptions())
    assert loss(coarse, targets).dtype == torch.float32
    torch.testing.assert_close(loss(coarse, targets), loss(coarse.float(), targets))


def test_a_document_without_positives_has_a_finite_loss() -> None:
    loss = Focal(FocalOptions(normaliser="positives", hard_negatives=0))
    assert torch.isfinite(loss(torch.zeros(1, 3), torch.zeros(1, 3)))


def test_gradcheck() -> None:
    logits, targets = cells(2, 5)
    for loss in (Focal(FocalOptions(smoothing="literal", **ALL)), Asymmetric(AsymmetricOptions(clip=0.01, **ALL))):
        assert torch.autograd.gradcheck(lambda x, loss=loss: loss(x, targets), (logits,))


def test_fulfils_the_role() -> None:
    losses: list[LabelLoss] = list(LOSSES)
    assert losses[0].hard_negatives == 5
    assert losses[0].random_negatives == 3
