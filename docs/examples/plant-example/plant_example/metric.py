"""A metric: the share of documents of which one of the k best labels is right."""

from plant_cli import kit
from plant_cli.api import MetricSpec, Options, hookimpl, option


class HitOptions(Options):
    cutoffs: list[int] = option([1, 5], "How many of the best labels count (repeatable).")


def compute(given, options):
    right = kit.find_hits(given.top, given.gold)
    hits = {k: right[:, :k].any(axis=1).astype(float) for k in options.cutoffs}
    return [kit.mean_of_documents(f"hit@{k}", hit) for k, hit in hits.items()]


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
