"""Options of the signals that have any."""

from plant_cli.api import Options, option


class RandomOptions(Options):
    """Options of the control `random`."""

    seed: int = option(0, "Another seed gives another, equally meaningless, relevance.", ge=0)
