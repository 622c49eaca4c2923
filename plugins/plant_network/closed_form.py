"""Classifiers in closed form: for each label, ridge regression on what its attention gathers,
without a step of training.

For label l, c_d is what its attention gathers from document d, and y_d whether d has the label.
With means c̄ and ȳ over train,

    w = (Σ (c_d − c̄)(c_d − c̄)ᵀ + λ I)⁻¹ Σ (y_d − ȳ)(c_d − c̄)

or, where documents are fewer than dimensions, the same from the products of documents with one
another. The logit is

    z = a w·(c − c̄) + u v·(m − m̄) + γ s + b log-odds(ȳ) + e

where v is the ridge regression on the mean m_d of a document, which rare labels rely on (u is 0 for
a decoder whose classifiers do not see the mean), and s the strength of the label's attention, less
its mean over train. a, u, γ, b and e depend on the number n of the label's training documents
alone: each is linear in ln n between its values for the rarest label, the most frequent one and one
between them. Logistic regression on validation gives these, and its likelihood also chooses the λ
of both regressions. Where labels are many, some of them choose it.

With c_d = m_d + δ_d, only δ_d is the label's own, and it is 0 where attention is even: in most
documents, if attention is relevance alone. Then Σ c cᵀ is Σ m mᵀ, which all labels share, and
Σ (δ δᵀ + δ mᵀ + m δᵀ) over the few documents that have a word of the label.

Source: Hoerl and Kennard 1970, Ridge regression; docs/maths.md has both forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.api import ClosedFormDecoder, ComponentError, Gathered
from plant_cli.runs.session import Session
from plant_cli.scoring.frequency_linear import Floats, Ints, spline_basis
from plant_cli.scoring.top_labels import Room
from plant_network.assembly import Network
from plant_network.group import Processes
from plant_network.hardware import Hardware
from plant_network.materials import Material
from plant_network.reading import Rows, lengths, sorted_batches

RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""λ that are tried."""
RIDGE_SHARPNESSES = (0.0, 0.25)
"""Factors on the learned part of attention that are tried: relevance in the scores is sharp
already.
"""
BYTES_HELD = {"cpu": 1 << 30, "cuda": 1 << 33}
"""Memory of the sums of some labels, by device; more labels are read in further passes over
train.
"""
CHANGES_HELD = 1 << 26
"""Numbers of changes that are held before they are added to the sums of their labels."""
RIDGE_LABELS = 500
"""Labels that choose λ: of more, some are drawn."""
KNOTS = 3
"""Numbers of training documents at which the weights of the parts are given."""
PART_PENALTY = 1.0
"""On squared changes of the parts' weights, in root mean squares of the parts, against the sum of
all losses.
"""
SCORES_JUDGED = 1 << 24
"""Scores of validation by which the parts are weighted; of more documents, some are drawn."""
PRIOR_MARGIN = 1e-6
"""Shares of documents are kept this far from 0 and 1, so that their log-odds are finite."""
NEWTON_STEPS, LEAST_FALL, SMALLEST_SCALE = 50, 1e-7, 1e-12


@dataclass(frozen=True, kw_only=True)
class ClosedForm:
    """What was chosen on validation."""

    ridge: float  # λ of the regression on what is gathered
    of_mean: float  # λ of the regression on the mean; NaN where classifiers do not see it
    knots: Floats  # training documents of labels, rising [K]
    parts: Tensor  # a, u, γ, b and e at each knot [5, K]
    loss: float  # mean penalised cross-entropy of a document

    def at(self, counts: Ints) -> Tensor:
        """a, u, γ, b and e of labels, by their numbers of training documents [5, l]."""
        basis = torch.from_numpy(spline_basis(counts, self.knots))
        return self.parts @ basis.T.to(self.parts)

    def __str__(self) -> str:
        of_mean = "" if np.isnan(self.of_mean) else f", of the mean {self.of_mean:g}"
        penalties = f"λ {self.ridge:g}{of_mean}"
        shown = [
            f"{scale:.1f} · regression + {mean:.1f} · that of the mean + {strength:.2f} · strength "
            f"of attention + {prior:.2f} · log-odds of frequency {constant:+.2f}"
            for scale, mean, strength, prior, constant in self.parts.T.tolist()
        ]
        if len(shown) == 1:
            return f"{penalties}, logit = {shown[0]}"
        labels = (
            f"{logit} for labels of {count:,.0f}"
            for logit, count in zip(shown, self.knots, strict=True)
        )
        return f"{penalties}, logit = {'; '.join(labels)} training documents"


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
    every = np.arange(network.labels)
    drawn = _draw(network.labels, RIDGE_LABELS, seed)
    judged = _draw(len(validation.split), SCORES_JUDGED // network.labels, seed)
    regression = _Regression(decoder, train, validation, judged, hardware, batch, session)
    chosen, solved = _choose(regression, drawn, RIDGES, RIDGES if decoder.sees_mean else ())
    if len(drawn) < len(every):
        del solved
        again = (chosen.of_mean,) if decoder.sees_mean else ()
        chosen, solved = _choose(regression, every, (chosen.ridge,), again)
    scale, mean, strength, prior, constant = chosen.at(_count(train, every)).to(solved.usual)
    constant += prior * _log_odds(train, every, constant.device) - strength * solved.usual
    constant -= scale * solved.gathered.levels[0] + mean * solved.of_mean.levels[0]
    own = scale.unsqueeze(1) * solved.gathered.weights[0]
    decoder.plant_head(own, mean.unsqueeze(1) * solved.of_mean.weights[0], constant, strength)
    session.reporter.note(
        f"classifiers in closed form: {chosen}, by {len(judged):,} documents of validation"
    )
    return chosen


def count_regressions(decoder: ClosedFormDecoder, labels: int, documents: int) -> tuple[int, int]:
    """How many systems of equations are solved for the classifiers of a decoder, and of how many
    unknowns each is, at most.
    """
    ways = len(RIDGES)
    solved = ways * labels if labels <= RIDGE_LABELS else ways * RIDGE_LABELS + labels
    return solved, min(documents, decoder.gathered_size)


def _draw(count: int, most: int, seed: int) -> Rows:
    """So many of the numbers below `count` at most, rising; at least one."""
    if count <= max(1, most):
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, size=max(1, most), replace=False))


def _count(train: Material, labels: Rows) -> Ints:
    """Training documents of labels [l]."""
    return np.asarray(train.split.gold[:, labels].astype(bool).sum(axis=0), dtype=np.int64)


def _log_odds(train: Material, labels: Rows, device: torch.device) -> Tensor:
    shares = torch.from_numpy(_count(train, labels) / len(train.split)).float()
    return torch.logit(shares.to(device), eps=PRIOR_MARGIN)


def _place_knots(counts: Ints) -> Floats:
    """Training documents of the rarest label, of the most frequent one and, between them, of one
    that is as many times the first as the last is of it.
    """
    least, most = max(1, int(counts.min())), max(1, int(counts.max()))
    return np.unique(np.geomspace(least, most, KNOTS))


@dataclass(frozen=True)
class _Weights:
    """Regressions of some labels l, with F penalties."""

    weights: Tensor  # [F, l, H]
    levels: Tensor  # what they give on average over train [F, l]
    scores: Tensor  # of documents of validation, less that level [F, n, l]

    @classmethod
    def empty(cls, ways: int, documents: int, labels: int, size: int, device: Any) -> _Weights:
        """Some that are all 0."""
        new = partial(torch.zeros, device=device)
        return cls(new(ways, labels, size), new(ways, labels), new(ways, documents, labels))

    def take(self, number: int) -> _Weights:
        """Those with one penalty."""
        one = slice(number, number + 1)
        return _Weights(self.weights[one], self.levels[one], self.scores[one])


@dataclass(frozen=True)
class _Solved:
    """The regressions of some labels l on what they gather and on the mean, and the strength of
    their attention.
    """

    gathered: _Weights
    of_mean: _Weights  # where no classifier sees the mean, one that is 0
    usual: Tensor  # mean strength over train [l]
    strengths: Tensor  # strength in documents of validation, less that mean [n, l]


def _choose(
    regression: _Regression, labels: Rows, ridges: Sequence[float], of_mean: Sequence[float]
) -> tuple[ClosedForm, _Solved]:
    """The best penalties for some labels, first that of the mean, with the weights of the parts,
    and the regressions with these.
    """
    solved = regression.solve(labels, ridges, of_mean)
    gold = regression.validation.split.gold[regression.judged][:, labels].toarray() != 0
    prior = _log_odds(regression.train, labels, solved.usual.device)
    target = torch.from_numpy(gold).to(prior.device)
    counts = _count(regression.train, labels)

    def fit(scores: Tensor, mean: Tensor, ridge: float, ridge_of_mean: float) -> ClosedForm:
        parts, knots, loss = _fit_parts(
            [scores, mean, solved.strengths, prior], counts=counts, gold=target
        )
        return ClosedForm(ridge=ridge, of_mean=ridge_of_mean, knots=knots, parts=parts, loss=loss)

    def find_best(fits: list[ClosedForm]) -> int:
        return min(range(len(fits)), key=lambda number: fits[number].loss)

    mean, nothing = 0, torch.zeros_like(solved.strengths)
    if len(of_mean) > 1:
        alone = [fit(nothing, one, np.nan, np.nan) for one in solved.of_mean.scores]
        mean = find_best(alone)
    taken = solved.of_mean.take(mean)
    fits = [
        fit(scores, taken.scores[0], ridge, of_mean[mean] if of_mean else np.nan)
        for ridge, scores in zip(ridges, solved.gathered.scores, strict=True)
    ]
    best = find_best(fits)
    return fits[best], replace(solved, gathered=solved.gathered.take(best), of_mean=taken)


@dataclass(frozen=True)
class _Regression:
    """Solves the regressions of labels, some at a time, each from one pass over train."""

    decoder: ClosedFormDecoder
    train: Material
    validation: Material
    judged: Rows  # documents of validation that are scored
    hardware: Hardware
    batch: Room | int
    session: Session

    def solve(self, labels: Rows, ridges: Sequence[float], of_mean: Sequence[float]) -> _Solved:
        """The regressions of some labels with some penalties, scored on validation."""
        size, device = self.decoder.gathered_size, self.hardware.device
        shape, count = (len(self.judged), len(labels), size, device), len(labels)
        solved = _Solved(
            gathered=_Weights.empty(len(ridges), *shape),
            of_mean=_Weights.empty(max(1, len(of_mean)), *shape),
            usual=torch.zeros(count, device=device),
            strengths=torch.zeros(len(self.judged), count, device=device),
        )
        held = BYTES_HELD["cpu" if device.type == "cpu" else "cuda"]
        room = max(1, held // (4 * min(2 * size * size, size * len(self.train.split))))
        with self.session.reporter.progress("classifiers", count, "labels") as task:
            for first in range(0, count, room):
                some = slice(first, min(first + room, count))
                sums = self._add_up(torch.from_numpy(labels[some]).to(device))
                solved.usual[some] = sums.strengths
                found = solved.gathered.weights[:, some] = sums.solve(ridges, held)
                solved.gathered.levels[:, some] = (found * sums.centres).sum(2)
                if of_mean:
                    found = solved.of_mean.weights[:, some] = sums.solve_means(of_mean)
                    solved.of_mean.levels[:, some] = found @ sums.mean
                self._score(labels, some, solved)
                task.advance(some.stop - some.start)
        self.hardware.processes.add(
            [solved.gathered.scores, solved.of_mean.scores, solved.strengths]
        )
        return solved

    def _add_up(self, labels: Tensor) -> _Sums:
        documents = np.arange(len(self.train.split))
        gold = self.train.split.gold[:, labels.cpu().numpy()]
        targets = torch.from_numpy(gold.toarray().astype(np.float32)).to(labels.device)
        sums = _Sums(targets, self.decoder.gathered_size)
        for rows, found in self._read(self.train, documents, labels):
            sums.add(rows, found)
        sums.finish(self.hardware.processes)
        return sums

    def _score(self, labels: Rows, some: slice, solved: _Solved) -> None:
        own, of_mean = solved.gathered, solved.of_mean
        wanted = torch.from_numpy(labels[some]).to(solved.usual.device)
        for rows, found in self._read(self.validation, self.judged, wanted):
            weights = own.weights[:, some]
            scores = torch.einsum("bv,flv->fbl", found.mean, weights)
            scores += torch.einsum("blv,flv->fbl", found.change, weights)
            own.scores[:, rows, some] = scores - own.levels[:, some].unsqueeze(1)
            scores = torch.einsum("bv,flv->fbl", found.mean, of_mean.weights[:, some])
            of_mean.scores[:, rows, some] = scores - of_mean.levels[:, some].unsqueeze(1)
            solved.strengths[rows, some] = found.strength - solved.usual[some]

    def _read(
        self, material: Material, chosen: Rows, labels: Tensor
    ) -> Iterator[tuple[Tensor, Gathered]]:
        """Places among the chosen documents [B], and what labels gather from them, in fp32."""
        processes = self.hardware.processes
        sizes = lengths(material.reader.tokens)[chosen]
        batches = processes.share(sorted_batches(sizes, self.batch))
        for rows in takewhile(lambda _: not self.session.should_stop(), batches):
            reading = material.reader.read(chosen[rows])
            with self.hardware.autocast():
                found = self.decoder.gather_with_strength(reading, labels)
            yield torch.from_numpy(rows).to(labels.device), Gathered(*(x.float() for x in found))
        self.session.check(
            "while classifiers were fitted", "all of them, before training", processes.any
        )


class _Sums:
    """What the regressions of some labels need of train: sums over all documents, of which each
    label's own part is that of the documents where its attention is not even.

    Of few documents (N below the size of what is gathered) the changes themselves are kept.
    """

    def __init__(self, targets: Tensor, size: int) -> None:
        documents, labels = targets.shape
        self.targets, self.size = targets, size
        self.few = documents < size
        new = partial(torch.zeros, device=targets.device)
        self.means = new(documents, size)
        self.totals = new(2, labels, size)  # Σ δ over all documents, and over the label's own
        self.strengths = new(labels)
        self.own = new(labels, documents, size) if self.few else new(2, labels, size, size)
        self.has_own = new(labels)
        self.held: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, rows: Tensor, found: Gathered) -> None:
        """Add documents, by their rows in train."""
        self.means[rows] = found.mean
        self.strengths += found.strength.sum(0)
        self.totals[0] += found.change.sum(0)
        self.totals[1] += torch.einsum("bl,blv->lv", self.targets[rows], found.change)
        row, label = found.change.ne(0).any(2).nonzero(as_tuple=True)
        self.held.append((label, rows[row], found.change[row, label]))
        if self.few or sum(len(x[0]) for x in self.held) * self.size >= CHANGES_HELD:
            self._add_held()

    def _add_held(self) -> None:
        label, row, change = (torch.cat(parts) for parts in zip(*self.held, strict=True))
        self.held.clear()
        if self.few:
            self.own[label, row] = change
            self.has_own[label] = 1
            return
        order = torch.argsort(label)
        counts = torch.bincount(label, minlength=len(self.has_own)).tolist()
        parts = (torch.split(x[order], counts) for x in (change, row))
        for number, (changes, rows) in enumerate(zip(*parts, strict=True)):
            if len(rows):
                self.own[0, number].addmm_(changes.T, changes)
                self.own[1, number].addmm_(changes.T, self.means[rows])
                self.has_own[number] = 1

    def finish(self, processes: Processes) -> None:
        """Bring the sums of all processes together, and count from the means."""
        if self.held:
            self._add_held()
        documents = len(self.means)
        processes.add([self.means, self.totals, self.strengths, self.own, self.has_own])
        self.strengths /= documents
        self.mean = self.means.mean(0)  # [H]
        self.means -= self.mean
        self.change = self.totals[0] / documents  # δ̄ [l, H]
        self.centres = self.mean + self.change  # c̄ [l, H]
        if not self.few:
            self.own[1] -= self.totals[0].unsqueeze(2) * self.mean

    def solve(self, ridges: Sequence[float], held: int) -> Tensor:
        """Weights of what is gathered for each penalty [F, l, H], with so many bytes for the
        squares of labels.
        """
        own, shared = (self.has_own > 0).nonzero()[:, 0], (self.has_own == 0).nonzero()[:, 0]
        width = min(len(self.means), self.size)
        groups = [
            some.unsqueeze(1) for some in torch.split(own, max(1, held // (16 * width * width)))
        ]
        if len(shared):  # attention is even everywhere: one regression for all of them
            groups.append(shared.unsqueeze(0))
        solve = self._solve_by_documents if self.few else self._solve_by_dimensions
        weights = self.means.new_zeros(len(ridges), *self.centres.shape)
        for labels in groups:
            weights[:, labels] = solve(labels, ridges)  # [F, g, k, H]
        return weights

    def solve_means(self, ridges: Sequence[float]) -> Tensor:
        """Weights of the mean alone for each penalty [F, l, H]."""
        centred = (self.targets - self.targets.mean(0)).T.unsqueeze(0)  # [1, l, N]
        if self.few:
            squares = (self.means @ self.means.T).unsqueeze(0)
            return (_solve(squares, centred, ridges) @ self.means)[:, 0]
        squares = (self.means.T @ self.means).unsqueeze(0)
        return _solve(squares, centred @ self.means, ridges)[:, 0]

    def _solve_by_dimensions(self, labels: Tensor, ridges: Sequence[float]) -> Tensor:
        """Weights [F, g, k, H] of labels [g, k]: those of a group share their squares."""
        first = labels[:, 0]
        mixed = self.own[1, first]
        squares = self.own[0, first] + self.means.T @ self.means + mixed + mixed.mT
        spread = self.change[first]
        squares -= len(self.means) * spread.unsqueeze(2) * spread.unsqueeze(1)
        own = self.targets.T @ self.means + self.totals[1]  # [l, H]
        own -= self.targets.sum(0).unsqueeze(1) * self.change
        return _solve(squares, own[labels], ridges)

    def _solve_by_documents(self, labels: Tensor, ridges: Sequence[float]) -> Tensor:
        """The same, from the products of documents with one another."""
        first = labels[:, 0]
        states = self.means + self.own[first] - self.change[first].unsqueeze(1)  # [g, N, H]
        centred = (self.targets - self.targets.mean(0)).T
        solved = _solve(torch.bmm(states, states.mT), centred[labels], ridges)
        return solved @ states


def _solve(squares: Tensor, right: Tensor, ridges: Sequence[float]) -> Tensor:
    """(squares + λ I)⁻¹ right for each λ [F, g, k, n], for squares [g, n, n] and right sides
    [g, k, n].
    """
    solved, level = [], 0.0
    for ridge in ridges:
        squares.diagonal(dim1=1, dim2=2).add_(ridge - level)
        level = ridge
        solved.append(torch.cholesky_solve(right.mT, torch.linalg.cholesky(squares)).mT)
    return torch.stack(solved)


def _fit_parts(
    parts_of: Sequence[Tensor], *, counts: Ints, gold: Tensor
) -> tuple[Tensor, Floats, float]:
    """Weights of the parts (regression, that of the mean, strength [n, l] and log-odds of frequency
    [l]) at each knot [5, K] by logistic regression on pairs [n, l], by Newton's method with halved
    steps; the knots; the loss.
    """
    knots = _place_knots(counts)
    basis = torch.from_numpy(spline_basis(counts, knots)).to(gold.device)  # [l, K]
    one = torch.ones_like(parts_of[0])
    parts = torch.stack([part.expand_as(one) for part in (*parts_of, one)]).double()  # [5, n, l]
    scale = parts.square().mean((1, 2)).sqrt().clamp_min(SMALLEST_SCALE).unsqueeze(1)
    parts /= scale.unsqueeze(2)
    start = basis.new_zeros(len(parts), len(knots))  # [4, K]
    start[3] = scale[3]  # log-odds of frequency: what is known without reading
    target = gold.double()

    def logits(at: Tensor) -> Tensor:
        return torch.einsum("pnl,pl->nl", parts, at @ basis.T)

    def measure(at: Tensor) -> float:
        fit = functional.binary_cross_entropy_with_logits(logits(at), target, reduction="sum")
        return float(fit + PART_PENALTY / 2 * (at - start).square().sum())

    weights, loss = start, measure(start)
    for _ in range(NEWTON_STEPS):
        shares = torch.sigmoid(logits(weights))
        slope = torch.einsum("pnl,nl->pl", parts, shares - target) @ basis
        slope += PART_PENALTY * (weights - start)
        of_label = torch.einsum("pnl,qnl,nl->lpq", parts, parts, shares * (1 - shares))
        bend = torch.einsum("lk,lm,lpq->pkqm", basis, basis, of_label)
        bend = bend.reshape(slope.numel(), slope.numel())
        bend.diagonal().add_(PART_PENALTY)
        step, share = torch.linalg.solve(bend, slope.flatten()).view_as(slope), 1.0
        while (new := measure(weights - share * step)) > loss and share > LEAST_FALL:
            share /= 2
        if loss - new <= LEAST_FALL * loss:
            break
        weights, loss = weights - share * step, new
    return weights / scale, knots, loss / len(gold)
