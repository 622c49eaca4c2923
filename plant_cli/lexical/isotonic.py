"""Logits bent by rising curves, one for each range of training frequency: isotonic regression, where enough documents tell the shape.

The curve is nearly flat within the blocks that isotonic regression finds and joins their ends, in logits: it rises everywhere, and so keeps
the order of one label's scores (Zadrozny and Elkan 2002, Transforming classifier scores into accurate multiclass probability estimates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from plant_cli.lexical.fusion import Floats, Ints

RANGES = (1, 6, 51)  # least training documents of a range
ENOUGH = 50  # right pairs for a curve of its own
DOUBT = 1.0  # pairs' worth of the probability before, in each block
SLOPE = 0.01  # of what the curve leaves flat
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One rising curve.

    Args:
        least: training documents from which it holds.
        logits: where it is known, rising [P].
        values: what becomes of these logits, never falling [P].
    """

    least: int
    logits: Floats
    values: Floats

    def bend(self, logits: Floats) -> Floats:
        """The curve at logits of any shape; beyond its ends it is nearly flat."""
        bent: Floats = (1 - SLOPE) * np.interp(logits, self.logits, self.values) + SLOPE * logits
        return bent


Curves = Sequence[Curve]
"""By rising training frequency; the first holds from 1."""


def fit_curves(logits: Floats, right: Booleans, counts: Ints, ranges: Sequence[int] = RANGES) -> tuple[Curve, ...]:
    """A curve for each range of training frequency with enough right pairs; a range with fewer joins the next more frequent one.

    Args:
        logits: of pairs [P].
        right: whether the document has the label [P].
        counts: training documents of each pair's label [P].
        ranges: least training documents of each range, rising, the first 1.
    """
    starts, last = [ranges[0]], ranges[0]
    for start in ranges[1:]:
        if right[(counts >= last) & (counts < start)].sum() >= ENOUGH and right[counts >= start].sum() >= ENOUGH:
            starts.append(start)
            last = start
    ends = [*starts[1:], np.inf]
    parts = [(counts >= start) & (counts < end) for start, end in zip(starts, ends, strict=True)]
    return tuple(_fit_curve(start, logits[part], right[part]) for start, part in zip(starts, parts, strict=True) if part.any())


def _fit_curve(least: int, logits: Floats, right: Booleans) -> Curve:
    values, where = np.unique(logits, return_inverse=True)
    pairs, hits = np.bincount(where).astype(np.float64), np.bincount(where, right.astype(np.float64))
    from scipy.optimize import isotonic_regression  # takes longer than to bend a list of scores

    found = isotonic_regression(hits / pairs, weights=pairs)
    number, rights, chances = (np.add.reduceat(part, found.blocks[:-1]) for part in (pairs, hits, pairs * expit(values)))
    shares = np.maximum.accumulate((rights + DOUBT * chances / number) / (number + DOUBT))
    ends = np.unique(np.concatenate([found.blocks[:-1], found.blocks[1:] - 1]))  # a block of one value has one end
    of = np.searchsorted(found.blocks, ends, side="right") - 1
    return Curve(least=least, logits=values[ends], values=logit(np.clip(shares, 1e-12, 1 - 1e-12))[of])


def bend_pairs(curves: Curves, logits: Floats, counts: Ints) -> Floats:
    """Logits of pairs [P] by the curves of their labels' training documents [P]."""
    bent = np.array(logits, dtype=np.float64)
    for curve, end in zip(curves, _ends(curves), strict=True):
        inside = (np.maximum(counts, 1) >= curve.least) & (np.maximum(counts, 1) < end)
        bent[inside] = curve.bend(bent[inside])
    return bent


def bend_labels(curves: Curves, logits: npt.NDArray[np.float32], train_counts: Ints) -> npt.NDArray[np.float32]:
    """Logits of all labels [B, L] by the curves of their training documents [L]."""
    bent = np.array(logits, dtype=np.float32)
    for curve, end in zip(curves, _ends(curves), strict=True):
        inside = np.flatnonzero((np.maximum(train_counts, 1) >= curve.least) & (np.maximum(train_counts, 1) < end))
        bent[:, inside] = curve.bend(bent[:, inside].astype(np.float64))
    return bent


def _ends(curves: Curves) -> list[float]:
    """Training documents up to which each curve holds, not included."""
    return [*(curve.least for curve in curves[1:]), np.inf][: len(curves)]
