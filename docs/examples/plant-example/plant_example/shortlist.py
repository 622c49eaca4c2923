"""A shortlist: the labels whose relevant words are in the text."""

from itertools import pairwise

from plant_cli.api import Options, ShortlistSpec, hookimpl, option


class OverlapOptions(Options):
    labels: int = option(500, "Labels proposed for a document, at most.", ge=1)


class Overlap:
    def __init__(self, options, given):
        self.limit, self.relevance = options.labels, given.relevance.T.tocsr()  # words x labels

    def propose(self, texts, counts):
        import numpy as np

        scores = (counts > 0).astype(np.float32) @ self.relevance  # documents x labels
        rows = [
            (scores.indices[start:end], scores.data[start:end])
            for start, end in pairwise(scores.indptr)
        ]
        return [
            labels[np.lexsort((labels, -values))][: self.limit].astype(np.int64)
            for labels, values in rows
        ]


@hookimpl
def plant_register_shortlists():
    return [
        ShortlistSpec(
            name="overlap",
            summary="The labels whose relevant words are in the text.",
            options=OverlapOptions,
            build=Overlap,
            most=lambda options, labels: min(options.labels, labels),
        )
    ]
