"""Stage 2 losses: selected pairs, golden numbers, equality with the plain formula and with
'forward all, mask, backward'.
"""

from __future__ import annotations

import math

import pytest
import torch
from plant_losses import (
    AsymmetricOptions,
    BceOptions,
    FocalOptions,
    LabelRankingOptions,
    label_losses,
)
from plant_losses.label_losses import Asymmetric, Bce, Focal, LabelNdcg, PairLoss, select_pairs
from references import assert_equal
from torch import Tensor


def test_golden_selection() -> None:
    logits = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]])
    targets = torch.tensor([[0.0, 1, 0, 0, 0], [1.0, 0, 0, 0, 0]])
    expected = [[True, True, True, False, False], [True, False, False, True, True]]
    assert select_pairs(logits, targets, hard=2, random=0).tolist() == expected


def test_counts_and_random_negatives() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, targets = (
        torch.randn(6, 50, generator=generator),
        (torch.rand(6, 50, generator=generator) < 0.1).float(),
    )
    selected = select_pairs(logits, targets, hard=10, random=5, generator=generator)
    assert selected[targets > 0].all()
    assert torch.equal((selected & (targets == 0)).sum(1), torch.full((6,), 15))
    again = select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(1))
    assert torch.equal(
        again, select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(1))
    )
    assert not torch.equal(
        again, select_pairs(logits, targets, 10, 5, torch.Generator().manual_seed(2))
    )


def test_ties_are_taken_in_random_order() -> None:
    logits, targets = torch.zeros(400, 10), torch.zeros(400, 10)
    shares = (
        select_pairs(logits, targets, hard=3, random=0, generator=torch.Generator().manual_seed(0))
        .float()
        .mean(0)
    )
    assert (shares - 0.3).abs().max() < 0.1


def test_everything_is_selected_when_there_is_nothing_to_choose() -> None:
    logits, targets = torch.randn(2, 4), torch.zeros(2, 4)
    for hard, random in ((0, 0), (4, 0), (3, 100)):
        assert select_pairs(logits, targets, hard=hard, random=random).all()
    assert select_pairs(
        logits, torch.tensor([[1.0, 1.0, 1.0, 0.0]]).expand(2, -1), hard=2, random=2
    ).all()


LOGIT, P = math.log(3), 0.75  # sigmoid(ln 3) = 3/4
ALL = {"hard_negatives": 0, "normaliser": "labels"}


def value(loss: PairLoss, target: float, logit: float = LOGIT) -> float:
    return loss(torch.tensor([[logit]], dtype=torch.float64), torch.tensor([[target]])).item()


@pytest.mark.parametrize(
    ("smoothing", "positive", "negative"),
    [("off", 1.0, 0.0), ("positive", 0.9, 0.0), ("literal", 0.9, 0.1), ("symmetric", 0.95, 0.05)],
)
def test_golden_focal(smoothing: str, positive: float, negative: float) -> None:
    loss = Focal(FocalOptions(smoothing=smoothing, **ALL))
    for target, smooth in ((1.0, positive), (0.0, negative)):
        expected = -smooth * (1 - P) ** 2 * math.log(P) - (1 - smooth) * P**2 * math.log(1 - P)
        assert value(loss, target) == pytest.approx(expected, abs=1e-12)


def test_golden_asymmetric_and_bce() -> None:
    asymmetric = Asymmetric(AsymmetricOptions(gamma_positive=1, **ALL))
    assert value(asymmetric, 1.0) == pytest.approx(-(1 - P) * math.log(P), abs=1e-12)
    assert value(asymmetric, 0.0) == pytest.approx(
        -((P - 0.05) ** 4) * math.log(1 - P + 0.05), abs=1e-12
    )
    assert value(asymmetric, 0.0, logit=-5.0) == pytest.approx(
        0, abs=1e-30
    )  # below the clip: an easy negative costs nothing
    assert value(Bce(BceOptions()), 1.0) == pytest.approx(-math.log(P), abs=1e-12)


def test_focal_without_focus_and_smoothing_is_bce() -> None:
    logits, targets = cells()
    plain = Focal(FocalOptions(gamma=0, smoothing="off", **ALL))(logits, targets)
    torch.testing.assert_close(plain, Bce(BceOptions())(logits, targets))
    torch.testing.assert_close(
        Asymmetric(AsymmetricOptions(gamma_negative=0, clip=0, **ALL))(logits, targets), plain
    )


def cells(documents: int = 4, labels: int = 40) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    logits = (
        torch.randn(documents, labels, generator=generator, dtype=torch.float64)
        .mul_(2)
        .requires_grad_()
    )
    return logits, (torch.rand(documents, labels, generator=generator) < 0.1).double()


LOSSES = [
    Focal(FocalOptions(hard_negatives=5, random_negatives=3, normaliser=n))
    for n in ("selected", "labels", "positives")
]
LOSSES += [
    Bce(BceOptions(hard_negatives=7)),
    Asymmetric(AsymmetricOptions(hard_negatives=6, random_negatives=2)),
]


@pytest.mark.parametrize(
    "loss", LOSSES, ids=lambda loss: f"{type(loss).__name__}-{loss.normaliser}"
)
@pytest.mark.parametrize("dense", [0, 1 << 20])
def test_equals_forward_all_mask_backward(
    loss: PairLoss, dense: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(label_losses.ALL_PAIRS, "cpu", dense)
    logits, targets = cells()
    selected = loss.select(logits, targets, torch.Generator().manual_seed(0))
    every = loss.pairs(logits, targets) * selected
    divisor = {
        "selected": selected.sum(1),
        "labels": torch.full((4,), 40),
        "positives": targets.sum(1).clamp(min=1),
    }[loss.normaliser]
    actual = loss(logits, targets, selected)
    assert_equal(
        (actual, [logits]),
        ((every.sum(1) / divisor).mean(), [logits]),
        torch.ones((), dtype=torch.float64),
    )
    assert not torch.autograd.grad(actual, logits)[0][~selected].any()


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


def test_half_precision_is_computed_in_fp32_and_a_document_without_positives_is_finite() -> None:
    logits, targets = cells()
    coarse, loss = logits.detach().bfloat16(), Bce(BceOptions())
    assert loss(coarse, targets).dtype == torch.float32
    torch.testing.assert_close(loss(coarse, targets), loss(coarse.float(), targets))
    positives = Focal(FocalOptions(normaliser="positives", hard_negatives=0))
    assert torch.isfinite(positives(torch.zeros(1, 3), torch.zeros(1, 3)))


def test_gradcheck() -> None:
    logits, targets = cells(2, 5)
    for loss in (
        Focal(FocalOptions(smoothing="literal", **ALL)),
        Asymmetric(AsymmetricOptions(clip=0.01, **ALL)),
    ):
        assert torch.autograd.gradcheck(lambda x, loss=loss: loss(x, targets), (logits,))


def plain_ndcg(logits: list[float], targets: list[float], temperature: float) -> float:
    """One document, one pair of labels at a time."""
    found = 0.0
    for i, target in enumerate(targets):
        rank = 1 + sum(
            1 / (1 + math.exp((logits[i] - other) / temperature))
            for j, other in enumerate(logits)
            if j != i
        )
        found += target / math.log2(1 + rank)
    ideal = sum(1 / math.log2(2 + rank) for rank in range(int(sum(targets))))
    return 1 - found / ideal


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_label_ndcg_is_the_mean_of_the_plain_formula(temperature: float) -> None:
    torch.manual_seed(0)
    logits = torch.randn(3, 6, dtype=torch.float64)
    targets = torch.tensor(
        [[1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [0, 1, 1, 1, 0, 0]], dtype=torch.float64
    )
    loss = LabelNdcg(LabelRankingOptions(temperature=temperature))
    expected = (
        sum(plain_ndcg(logits[i].tolist(), targets[i].tolist(), temperature) for i in range(3)) / 3
    )
    assert loss(logits, targets).item() == pytest.approx(expected, abs=1e-9)


def test_a_document_without_labels_counts_0_wherever_a_step_is_cut() -> None:
    loss = LabelNdcg(LabelRankingOptions())
    logits, targets = (
        torch.randn(4, 4),
        torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]),
    )
    alone = [loss(logits[i : i + 1], targets[i : i + 1]).item() for i in range(4)]
    assert alone[1] == alone[3] == 0
    assert loss(logits, targets).item() == pytest.approx(sum(alone) / 4)
