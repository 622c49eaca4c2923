"""A metric: the share of documents of which one of the k best labels is right."""

from plant_cli.api import MetricSpec, MetricValue, Options, hookimpl, option


class HitOptions(Options):
    cutoffs: list[int] = option([1, 5], "How many of the best labels count (repeatable).")


def compute(given, options):
    import numpy as np

    documents = np.arange(len(given.top))[:, None]
    right = (given.top >= 0) & (given.gold.toarray()[documents, given.top] > 0)
    values = []
    for k in options.cutoffs:
        hit = right[:, :k].any(axis=1).astype(float)
        contributions = np.column_stack(
            [hit, np.ones(len(hit))]
        )  # the mean over documents, also of a resample
        values.append(
            MetricValue(
                name=f"hit@{k}", contributions=contributions, combine=divide, per_document=hit
            )
        )
    return values


def divide(sums):
    return sums[:, 0] / sums[:, 1]


@hookimpl
def plant_register_metrics():
    return [
        MetricSpec(
            name="hit",
            summary="Share of documents with a right label among the best.",
            options=HitOptions,
            compute=compute,
        )
    ]
