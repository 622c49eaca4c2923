"""How much of the documents lies beyond the backbone's limit, and is not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from plant_cli.api import Backbone, Evidence, TokenBatch, promises


@dataclass(frozen=True, kw_only=True)
class CutEvidence:
    """How much of a split's gold evidence lies beyond the last token that is read of its
    document.
    """

    spans: int  # of the split
    lost: int  # spans that begin beyond the last token
    in_part: int  # spans that only end beyond it
    labels: int  # (document, label) pairs with any span
    labels_lost: int  # pairs whose spans are all lost

    def __str__(self) -> str:
        return (
            f"{self.lost:,} of {self.spans:,} gold evidence spans lie beyond and {self.in_part:,} "
            "reach beyond; "
            f"{self.labels_lost:,} of {self.labels:,} labels have no evidence in the part that is "
            "read"
        )


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How much of a split lies beyond the backbone's limit, which windows do not lift."""

    documents: float = 0.0  # share of the documents that are longer than the limit
    tokens: float = 0.0  # share of all tokens that are dropped
    evidence: CutEvidence | None = None  # None if the corpus has no evidence


def tokenize(backbone: Backbone, texts: Sequence[str]) -> TokenBatch:
    """The tokens of texts, checked: a backbone may come from any plugin."""
    tokens = backbone.tokenize(texts)
    who = f"backbone '{type(backbone).__module__}.{type(backbone).__qualname__}'"
    promises.TOKEN_BATCH.require(tokens, texts, who=who, what="tokenize")
    return tokens


def measure_cut(tokens: TokenBatch, evidence: Evidence | None = None) -> Cut:
    """How much of these documents, and of their gold evidence, was cut."""
    dropped = sum(tokens.dropped)
    documents = sum(1 for count in tokens.dropped if count) / max(1, len(tokens))
    share = dropped / max(1, dropped + sum(map(len, tokens.ids)))
    if evidence is None:
        return Cut(documents=documents, tokens=share)
    ends = [int(spans[-1][1]) if len(spans) else 0 for spans in tokens.spans]
    limits = np.array(
        [end if dropped else np.inf for end, dropped in zip(ends, tokens.dropped, strict=True)]
    )[evidence.rows]
    lost = evidence.spans[:, 0] >= limits
    pairs = list(zip(evidence.rows.tolist(), evidence.labels, strict=True))
    read = {pair for pair, beyond in zip(pairs, lost, strict=True) if not beyond}
    in_part, labels = int((~lost & (evidence.spans[:, 1] > limits)).sum()), set(pairs)
    counts = CutEvidence(
        spans=len(lost),
        lost=int(lost.sum()),
        in_part=in_part,
        labels=len(labels),
        labels_lost=len(labels - read),
    )
    return Cut(documents=documents, tokens=share, evidence=counts)


def cut_summary(cuts: Mapping[str, Cut]) -> dict[str, dict[str, Any]]:
    """For a stage's record: both shares by split, and counts of the evidence where there is any."""
    counts = {name: asdict(cut.evidence) for name, cut in cuts.items() if cut.evidence}
    return {
        "documents_cut": {name: cut.documents for name, cut in cuts.items()},
        "tokens_dropped": {name: cut.tokens for name, cut in cuts.items()},
        **({"evidence_cut": counts} if counts else {}),
    }
