"""Classifiers in closed form: for each label, ridge regression on what its attention gathers,
without a step of training.

For label l, c_d is what its attention gathers from document d, and y_d whether d has the label.
With means c̄ and ȳ over train,

    w = (Σ (c_d − c̄)(c_d − c̄)ᵀ + λ I)⁻¹ Σ (y_d − ȳ)(c_d − c̄)

or, where documents are fewer than dimensions, the same from the products of documents with one
another. The logit is then

    z = a w·(c − c̄) + γ s + b log-odds(ȳ) + e

where s is the strength of the label's attention, less its mean over train. a, γ, b and e are the
same for all labels: logistic regression on validation, whose likelihood also chooses λ.

Source: Hoerl and Kennard 1970, Ridge regression; docs/maths.md has both forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.api import ClosedFormDecoder, ComponentError
from plant_cli.network.assembly import Network
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import Room, Rows, lengths, sorted_batches
from plant_cli.runs.session import Session
from plant_cli.training.materials import Material

RIDGES = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""λ that are tried."""
RIDGE_SHARPNESSES = (0.0, 0.25)
"""Factors on the learned part of attention that are tried: relevance in the scores is sharp
already.
"""
BYTES_HELD = {"cpu": 1 << 30, "cuda": 1 << 33}
"""Memory of the sums of some labels, by device; more labels are read in further passes over
train.
"""
DOCUMENTS_ADDED = 128
"""Documents whose products are added at once: fewer would be slowed down by memory."""
SCORES_JUDGED = 1 << 27
"""Scores of validation that are held to choose λ and the weights of the parts; of more
documents, some are drawn.
"""
PRIOR_MARGIN = 1e-6
"""Shares of documents are kept this far from 0 and 1, so that their log-odds are finite."""
NEWTON_STEPS, LEAST_FALL, SMALLEST_SCALE = 50, 1e-7, 1e-12


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """What was chosen on validation."""

    ridge: float  # λ
    scale: float  # a
    strength: float  # γ
    prior: float  # b
    constant: float  # e
    loss: float  # mean cross-entropy of a document

    def __str__(self) -> str:
        return (
            f"λ {self.ridge:g}, logit = {self.scale:.1f} · regression + {self.strength:.2f} · "
            "strength of attention "
            f"+ {self.prior:.2f} · log-odds of frequency {self.constant:+.2f}"
        )


@torch.no_grad()
def fit_classifiers(
    network: Network,
    train: Material,
    validation: Material,
    hardware: Hardware,
    *,
    seed: int,
    batch: Room | int,
    session: Session,
) -> ClosedForm:
    """Set the classifiers of a network's labels; what its attention does stays as it is.

    Raises:
        ComponentError: the decoder has no classifiers that can be set.
    """
    decoder = network.decoder
    if not isinstance(decoder, ClosedFormDecoder):
        raise ComponentError(
            f"the classifiers of the decoder '{network.section.decoder.name}' have no closed form",
            where="finetune, option head",
            expected="a decoder with gather_with_strength and plant_head "
            "(plant_cli.api.ClosedFormDecoder)",
            todo="leave --head out, or another --decoder",
        )
    network.eval()
    labels, size, device = network.labels, decoder.head_size, hardware.device
    judged = _draw(len(validation.split), labels * len(RIDGES), seed)
    weights = torch.zeros(len(RIDGES), labels, size, device=device)
    centres = torch.zeros(labels, size, device=device)
    usual = torch.zeros(labels, device=device)  # mean strength over train
    scores = torch.zeros(len(RIDGES), len(judged), labels, device=device)
    strengths = torch.zeros(len(judged), labels, device=device)
    reads = _Reads(decoder, hardware, batch, session)
    with session.reporter.progress("classifiers", labels, "labels") as task:
        every = torch.arange(labels, device=device)
        for some in torch.split(every, _labels_at_once(train, size, device)):
            solved, centres[some], usual[some] = _solve(reads, train, some, size)
            weights[:, some] = solved
            for rows, gathered, strength in reads.read(validation, judged, some):
                gathered = gathered - centres[some]
                scores[:, rows[:, None], some] = torch.einsum("blv,flv->fbl", gathered, solved)
                strengths[rows[:, None], some] = strength - usual[some]
            task.advance(len(some))
    hardware.processes.add([scores, strengths])
    shares = torch.from_numpy(np.asarray(train.split.gold.mean(axis=0), dtype=np.float32))
    prior = torch.logit(shares.to(device), eps=PRIOR_MARGIN)
    gold = torch.from_numpy(validation.split.gold[judged].toarray() != 0).to(device)
    fits = [
        _fit_parts(ridge, of_ridge, strengths, prior, gold)
        for ridge, of_ridge in zip(RIDGES, scores, strict=True)
    ]
    best = min(range(len(fits)), key=lambda number: fits[number].loss)
    chosen, scaled = fits[best], fits[best].scale * weights[best]
    constant = chosen.prior * prior + chosen.constant - (scaled * centres).sum(1)
    constant -= chosen.strength * usual
    decoder.plant_head(scaled, constant, chosen.strength)
    session.reporter.note(
        f"classifiers in closed form: {chosen}, by {len(judged):,} documents of validation"
    )
    return chosen


def _draw(documents: int, numbers: int, seed: int) -> Rows:
    """Documents, as many as may be held with so many numbers each; at least one."""
    most = max(1, SCORES_JUDGED // max(1, numbers))
    rows = np.arange(documents)
    if documents <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(documents, size=most, replace=False))


def _labels_at_once(train: Material, size: int, device: torch.device) -> int:
    rows = min(len(train.split), size + DOCUMENTS_ADDED)
    held = BYTES_HELD["cpu" if device.type == "cpu" else "cuda"]
    return max(1, held // (4 * size * rows))


@dataclass(frozen=True)
class _Reads:
    """Reads what labels gather."""

    decoder: ClosedFormDecoder
    hardware: Hardware
    batch: Room | int
    session: Session

    def read(
        self, material: Material, chosen: Rows, labels: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Places among the chosen documents [B], what labels gather from them [B, l, V], fp32,
        and with what strength [B, l].
        """
        processes = self.hardware.processes
        sizes = lengths(material.reader.tokens)[chosen]
        batches = processes.share(sorted_batches(sizes, self.batch))
        for rows in takewhile(lambda _: not self.session.should_stop(), batches):
            reading = material.reader.read(chosen[rows])
            with self.hardware.autocast():
                gathered, strength = self.decoder.gather_with_strength(reading, labels)
            yield torch.from_numpy(rows).to(labels.device), gathered.float(), strength.float()
        self.session.check(
            "while classifiers were fitted", "all of them, before training", processes.any
        )


def _solve(
    reads: _Reads, train: Material, labels: Tensor, size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights for each λ [F, l, V], centres c̄ [l, V] and mean strengths [l] of some labels,
    from one pass over train.
    """
    documents, processes = len(train.split), reads.hardware.processes
    gold = train.split.gold[:, labels.cpu().numpy()].toarray().astype(np.float32)
    targets = torch.from_numpy(gold).to(labels.device)
    few = documents < size
    squares = torch.zeros(len(labels), size, size if not few else documents, device=labels.device)
    total = torch.zeros(2, len(labels), size, device=labels.device)  # of all, and of own documents
    held: list[tuple[Tensor, Tensor]] = []

    def add() -> None:
        gathered = torch.cat([x for _, x in held]).transpose(0, 1)  # [l, B, V]
        rows = torch.cat([r for r, _ in held])
        if few:
            squares[:, :, rows] = gathered.mT
        else:
            squares.baddbmm_(gathered.mT, gathered)
        total[0] += gathered.sum(1)
        total[1] += torch.bmm(targets[rows].T.unsqueeze(1), gathered)[:, 0]
        held.clear()

    strengths = torch.zeros(len(labels), device=labels.device)
    for rows, gathered, strength in reads.read(train, np.arange(documents), labels):
        strengths += strength.sum(0)
        held.append((rows, gathered))
        if sum(len(r) for r, _ in held) >= DOCUMENTS_ADDED:
            add()
    if held:
        add()
    processes.add([squares, total, strengths])
    centre, usual = total[0] / documents, strengths / documents
    products = total[1] - targets.sum(0).unsqueeze(1) * centre
    if few:
        squares -= centre.unsqueeze(2)
        return _solve_by_documents(squares, targets - targets.mean(0)), centre, usual
    squares.baddbmm_(centre.unsqueeze(2), centre.unsqueeze(1), alpha=-documents)
    weights = [_divide(squares, products.unsqueeze(2), x)[..., 0] for x in RIDGES]
    return torch.stack(weights), centre, usual


def _solve_by_documents(states: Tensor, targets: Tensor) -> Tensor:
    """Weights [F, l, V] from centred states [l, V, N] and targets [N, l]."""
    products, right = torch.bmm(states.mT, states), targets.T.unsqueeze(2)
    return torch.stack([torch.bmm(states, _divide(products, right, x))[..., 0] for x in RIDGES])


def _divide(squares: Tensor, right: Tensor, ridge: float) -> Tensor:
    """(squares + λ I)⁻¹ right, for squares [l, n, n] and right [l, n, 1]."""
    filled = squares.clone()
    filled.diagonal(dim1=1, dim2=2).add_(ridge)
    return torch.cholesky_solve(right, torch.linalg.cholesky(filled))


def _fit_parts(
    ridge: float, scores: Tensor, strengths: Tensor, prior: Tensor, gold: Tensor
) -> ClosedForm:
    """Weights of the parts by logistic regression on pairs [n, L], by Newton's method with
    halved steps.
    """
    parts = [scores, strengths, prior.expand_as(scores), torch.ones_like(scores)]
    target = gold.flatten().double()
    table = torch.stack([part.flatten() for part in parts], dim=1).double()
    scale = table.square().mean(0).sqrt().clamp_min(SMALLEST_SCALE)
    table /= scale
    weights = torch.zeros(len(parts), dtype=table.dtype, device=table.device)
    weights[2] = scale[2]  # log-odds of frequency: what is known without reading

    def measure(at: Tensor) -> float:
        return float(functional.binary_cross_entropy_with_logits(table @ at, target))

    loss = measure(weights)
    for _ in range(NEWTON_STEPS):
        shares = torch.sigmoid(table @ weights)
        slope = table.T @ (shares - target)
        bend = table.T @ (table * (shares * (1 - shares)).unsqueeze(1))
        bend.diagonal().add_(1e-6 * bend.diagonal().mean().clamp_min(SMALLEST_SCALE))
        step, share = torch.linalg.solve(bend, slope), 1.0
        while (new := measure(weights - share * step)) > loss and share > LEAST_FALL:
            share /= 2
        if loss - new <= LEAST_FALL * loss:
            break
        weights, loss = weights - share * step, new
    a, strength, b, constant = (weights / scale).tolist()
    return ClosedForm(
        ridge=ridge,
        scale=a,
        strength=strength,
        prior=b,
        constant=constant,
        loss=loss * scores.shape[1],
    )
