"""Why a label: which scorers add to its score, how much, and by what."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plant_cli.api import Reason
from plant_cli.inference.scorers import FusedScorers, ScoredDocuments
from plant_cli.lexical.fusion import hat_weights

LEAST = 0.05  # log-odds below which a scorer is not named


def explain_labels(
    scored: ScoredDocuments, trust: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], otherwise: str = ""
) -> list[list[Reason]]:
    """What scorers say for some labels of each document, the one that adds most first: `titles +2.1 (…); words +0.8 (…)`.

    The number is what the scorer adds to the log-odds of the whole model, over a label of average scores among the document's candidates;
    it is of the weighted sum, before the calibration's curves, where there are any.

    Args:
        scored: the documents, kept in words [B].
        trust: the weight of the scorers' sum in the whole model, for each label [L].
        labels: rows of the label index [B, k].
        otherwise: the reason where no scorer adds anything.
    """
    scorers, candidates, documents = scored.scorers, scored.candidates, scored.documents
    if documents is None:
        raise ValueError("the documents were not kept in words")
    found = []
    for row, own in enumerate(labels.tolist()):
        document = documents.take(np.array([row]))
        said = {scorer.name: scorer.explain(document, own) for scorer in scorers.scorers}
        inside = slice(*np.searchsorted(candidates.rows, [row, row + 1]))
        listed = dict(zip(candidates.labels[inside].tolist(), candidates.values[inside], strict=True))
        values = [trust[label] * listed.get(label, candidates.floors[row]) for label in own]
        reasons = [_tell(scorers, said, place, label, values[place]) for place, label in enumerate(own)]
        found.append([reason if reason.text else Reason(text=otherwise) for reason in reasons])
    return found


def _tell(scorers: FusedScorers, said: dict[str, list[Reason]], place: int, label: int, values: npt.NDArray[np.float64]) -> Reason:
    weights = (hat_weights(scorers.train_counts[[label]], scorers.fusion.knots) @ scorers.fusion.weights.T)[0]
    added = {name: float((weights * values)[scorers.views_of(name)].sum()) for name in said}
    parts, words = [], dict[str, None]()
    for name in sorted(added, key=lambda name: -added[name]):
        if added[name] >= LEAST:
            reason = said[name][place]
            parts.append(f"{name} +{added[name]:.1f}" + (f" ({reason.text})" if reason.text else ""))
            words |= dict.fromkeys(reason.words)
    return Reason(text="; ".join(parts), words=tuple(words))
