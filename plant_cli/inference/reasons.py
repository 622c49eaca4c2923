"""Why a label: which scorer speaks for it, how loudly, and by what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plant_cli.api import Reason, SilentReporter
from plant_cli.inference.model import Voices
from plant_cli.inference.scorers import FusedScorers, read_words
from plant_cli.lexical.fusion import hat_weights

LEAST = 0.05  # log-odds below which a scorer is not named


def explain_labels(voices: Voices, texts: Sequence[str], labels: npt.NDArray[np.int64]) -> list[list[Reason]]:
    """What speaks for some labels of each text, loudest first: `titles +2.1 (…); words +0.8 (…)`.

    The number is what the scorer adds to the log-odds of the whole model, over a label of average scores among the text's candidates;
    it is of the weighted sum, before the calibration's curves, where there are any.

    Args:
        voices: of the model; without scorers nothing speaks.
        texts: one a document [B].
        labels: rows of the label index [B, k].
    """
    scorers = voices.scorers
    if scorers is None or not labels.size:
        return [[Reason(text="")] * len(own) for own in labels]
    trust = voices.weights()[0][-1]  # what is left of the scorers' sum beside a network
    documents = read_words(texts, scorers.analyser)
    scored = scorers.read(texts, SilentReporter(), "reasons").candidates
    found = []
    for row, own in enumerate(labels.tolist()):
        document = documents.take(np.array([row]))
        said = {scorer.name: list(scorer.scorer.explain(document, own)) for scorer in scorers.scorers}
        inside = slice(*np.searchsorted(scored.rows, [row, row + 1]))
        listed = dict(zip(scored.labels[inside].tolist(), scored.values[inside], strict=True))
        values = [trust[label] * listed.get(label, scored.floors[row]) for label in own]
        found.append([_tell(scorers, said, place, label, values[place]) for place, label in enumerate(own)])
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
