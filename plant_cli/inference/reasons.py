"""Why a label: how much network and scorers add to its score, and by what."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plant_cli.api import Reason
from plant_cli.artefacts.predictions import NETWORK
from plant_cli.inference.scorers import FusedScorers, ScoredDocuments
from plant_cli.lexical.documents import number_words
from plant_cli.lexical.fusion import hat_weights

LEAST = 0.05  # log-odds below which a part is not named


def explain_labels(
    scored: ScoredDocuments, trust: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], network: npt.NDArray[np.float64] | None = None
) -> list[list[Reason]]:
    """What speaks for some labels of each document, the part that adds most first: `network +2.3; titles +2.1 (…); words +0.8 (…)`.

    The number is what the part adds to the log-odds of the whole model, over a label of average scores among the document's candidates;
    it is of the weighted sum, before the calibration's curves, where there are any.

    Args:
        scored: the documents, kept in words [B].
        trust: the weight of the scorers' sum in the whole model, for each label [L].
        labels: rows of the label index [B, k].
        network: what it adds to these labels [B, k]; None: it is not told.
    """
    scorers, candidates, documents = scored.scorers, scored.candidates, scored.documents
    if documents is None:
        raise ValueError("the documents were not kept in words")
    found = []
    for row, own in enumerate(labels.tolist()):
        words = documents.take(np.array([row]))
        document = number_words([[words.vocabulary[number] for number in words.numbers.tolist()]])  # whose vocabulary is its own
        said = {scorer.name: scorer.explain(document, own) for scorer in scorers.scorers}
        inside = candidates.span(row)
        listed = dict(zip(candidates.labels[inside].tolist(), candidates.values[inside], strict=True))
        values = [trust[label] * listed.get(label, candidates.floors[row]) for label in own]
        besides = [{} if network is None else {NETWORK: float(amount)} for amount in (own if network is None else network[row])]
        found.append([_tell(scorers, said, place, label, values[place], besides[place]) for place, label in enumerate(own)])
    return found


def _tell(
    scorers: FusedScorers,
    said: dict[str, list[Reason]],
    place: int,
    label: int,
    values: npt.NDArray[np.float64],
    besides: dict[str, float],
) -> Reason:
    weights = (hat_weights(scorers.train_counts[[label]], scorers.fusion.knots) @ scorers.fusion.weights.T)[0]
    added = besides | {name: float((weights * values)[scorers.views_of(name)].sum()) for name in said}
    parts, words = [], dict[str, None]()
    for name in sorted(added, key=lambda name: -added[name]):
        if added[name] >= LEAST:
            reason = said[name][place] if name in said else Reason(text="")
            parts.append(f"{name} +{added[name]:.1f}" + (f" ({reason.text})" if reason.text else ""))
            words |= dict.fromkeys(reason.words)
    return Reason(text="; ".join(parts), words=tuple(words))
