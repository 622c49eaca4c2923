"""Options of the shortlists."""

from __future__ import annotations

from plant_cli.api import Options, option


class WordsOptions(Options):
    """Options of the shortlist `words`."""

    size: int = option(4096, "Labels proposed for a document by its words, at most.", ge=1)
    frequent: int = option(1024, "Labels with the most training documents, proposed for every document.", ge=0)
