"""A signal: the Dice coefficient of word and label."""

from plant_cli.api import SignalSpec, hookimpl


def dice(counts, options):
    return 2 * counts.docs_with_both / (counts.docs_with_word + counts.docs_with_label)


@hookimpl
def plant_register_signals():
    return [
        SignalSpec(
            name="dice", summary="Twice the documents of both over those of each.", score=dice
        )
    ]
