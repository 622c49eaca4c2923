"""What makes up the log-odds of a label: the base, and what the network and each view of the
scorers add.

The logit of a label is a weighted sum of what the sources say (`fusion`, `calibration`), then
perhaps a rising map of it, then perhaps a mean with the base rate. What follows the sum is a
function f of one number, so that the shares of the parts are those of integrated gradients on the
straight line from a label without any evidence: p_i (f(r + Σ p) − f(r)) / Σ p, which add up to f(r
+ Σ p) − f(r) exactly.

Source: Sundararajan et al. 2017, Axiomatic attribution for deep networks; docs/maths.md says what r
and the p_i are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plant_cli.api import Reason
from plant_cli.data.words import number_words
from plant_cli.scoring.calibration import LIMIT, apply_maps
from plant_cli.scoring.fused_scorers import Combination, ScoredDocuments
from plant_cli.scoring.predictions import NETWORK

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LEAST = 0.05  # log-odds below which a part is not named as a reason


@dataclass(frozen=True, kw_only=True)
class ScoreSums:
    """The log-odds of k labels of one document, and how they come about."""

    whole: Floats  # log-odds [k]
    network: Floats  # what the network adds [k]
    of_network: Floats  # what one unit of its logit is [k]
    scorers: Floats  # what each view of the scorers adds [k, S]
    of_scores: Floats  # what one unit of each view's score is [k, S]

    @property
    def base(self) -> Floats:
        """What neither the network nor a scorer adds [k]."""
        base: Floats = self.whole - self.network - self.scorers.sum(axis=1)
        return base

    @classmethod
    def of(
        cls,
        combination: Combination | None,
        labels: Ints,
        scored: ScoredDocuments | None,
        row: int,
        network: tuple[Floats, float] | None = None,
    ) -> ScoreSums:
        """Of some labels [k].

        Args:
            combination: None for a network that was saved without calibration.
            labels: rows of the label index [k].
            scored: documents that the scorers have scored, if there are any, and which of them.
            row: the document.
            network: its logits [k], and that of an average label (`average_logit`); None without a
                network.
        """
        k, rows = len(labels), np.full(len(labels), row)
        logits, average = (
            (np.zeros(k), 0.0)
            if network is None
            else (np.clip(network[0], -LIMIT, LIMIT), network[1])
        )
        added, units, rest = np.zeros((k, 0)), np.zeros((k, 0)), np.zeros(k)
        if scored is not None:
            pairs = scored.pairs
            values = pairs.look_up(rows, labels)
            weights, bias = scored.weigh(values, rows, labels)
            added, units = weights * (values - pairs.zeros[row]), weights * pairs.scales[row]
            rest = weights @ pairs.zeros[row] + bias
        if combination is None:
            return cls(
                whole=logits,
                network=logits - average,
                of_network=np.ones(k),
                scorers=added,
                of_scores=units,
            )
        calibration, counts = combination.calibration, combination.train_counts[labels]
        slopes, offset = calibration.linear.at(counts)

        def draw(sums: Floats) -> Floats:
            return sums if scored is None else np.asarray(scored.draw(sums, rows, counts))

        def finish(by_network: Floats | float, fused: Floats) -> Floats:
            """The log-odds by the network's logits and the fused ones of the scorers."""
            if network is None:
                return draw(
                    apply_maps(
                        calibration.maps,
                        slopes[:, 0] * np.clip(fused, -LIMIT, LIMIT) + offset,
                        counts,
                    )
                )
            sums = slopes[:, 0] * by_network + offset
            return apply_maps(
                calibration.maps,
                sums + (0.0 if scored is None else slopes[:, 1] * draw(fused)),
                counts,
            )

        trust = 1.0 if scored is None or scored.trust is None else float(scored.trust[row])
        of_network, of_fused = slopes[:, 0] * (network is not None), trust * slopes[:, -1]
        by_network, by_scorers = of_network * (logits - average), of_fused[:, None] * added
        whole, base = finish(logits, rest + added.sum(axis=1)), finish(average, rest)
        given = by_network + by_scorers.sum(axis=1)
        stretch = np.divide(whole - base, given, out=np.ones(k), where=np.abs(given) > 1e-9)
        return cls(
            whole=whole,
            network=stretch * by_network,
            of_network=stretch * of_network,
            scorers=stretch[:, None] * by_scorers,
            of_scores=(stretch * of_fused)[:, None] * units,
        )


def average_logit(logits: Floats, listed: Ints | None) -> float:
    """The mean of a network's logits [L] over the labels that scorers list for the document;
    over all where there are none.
    """
    cut = np.clip(logits, -LIMIT, LIMIT)
    return float((cut if listed is None or not len(listed) else cut[listed]).mean())


def explain_labels(
    scored: ScoredDocuments,
    combination: Combination,
    labels: Sequence[Ints] | Ints,
    network: tuple[Floats, Floats] | None = None,
) -> list[list[Reason]]:
    """Reasons for some labels of each document, whose number may differ (`join_reasons`).

    A network gives its logits of these labels [B, k] and those of average labels [B].
    """
    scorers, documents, explained = scored.scorers, scored.documents, []
    for row, chosen in enumerate(labels):
        words = documents.take(np.array([row]))
        spelt = [words.vocabulary[number] for number in words.numbers.tolist()]
        document = replace(number_words([spelt]), texts=words.texts)  # its own vocabulary
        sums = ScoreSums.of(
            combination,
            chosen,
            scored,
            row,
            None if network is None else (network[0][row], float(network[1][row])),
        )
        parts = (
            {}
            if network is None
            else {NETWORK: (sums.network.tolist(), [Reason(text="")] * len(chosen))}
        )
        for name, reasons in scorers.explain(document, chosen.tolist()).items():
            parts[name] = sums.scorers[:, scorers.views_of(name)].sum(axis=1).tolist(), reasons
        explained.append(
            [
                join_reasons(
                    float(sums.base[at]),
                    {name: (added[at], reasons[at]) for name, (added, reasons) in parts.items()},
                )
                for at in range(len(chosen))
            ]
        )
    return explained


def join_reasons(base: float, parts: Mapping[str, tuple[float, Reason]]) -> Reason:
    """One reason of the base and of what each part adds, which sum to the log-odds: `base -4.2;
    network +2.3; titles +2.1 (…); words -0.8`.

    The part that adds most comes first; those that add or take next to nothing are left out. A
    part says its own reason where it speaks for the label.
    """
    texts, words = [f"base {base:+.1f}"], dict[str, None]()
    for name, (amount, reason) in sorted(parts.items(), key=lambda part: -part[1][0]):
        if amount >= LEAST:
            texts.append(f"{name} {amount:+.1f}" + (f" ({reason.text})" if reason.text else ""))
            words |= dict.fromkeys(reason.words)
        elif amount <= -LEAST:
            texts.append(f"{name} {amount:+.1f}")
    return Reason(text="; ".join(texts), words=tuple(words))
