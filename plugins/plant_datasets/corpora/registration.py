"""The corpora that are registered by name. Their options stand here, and their readers are imported when they are asked for.

Each is read from what its publisher hands out, or from tables with the columns of the section `data`, as `plant data convert` writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

from plant_cli.api import DataSection, Dataset, DatasetSpec, NoOptions, Options, UsageError, option
from plant_datasets.corpora.cards import CARDS


class Eurlex57kOptions(Options):
    """What of a law is read."""

    attachments: bool = option(False, "Read attachments, too.")


class CodiespOptions(Options):
    """Which codes are read."""

    codes: Literal["all", "D", "P"] = option("all", "D: diagnoses; P: procedures.")


class ReutersOptions(Options):
    """Which stories and categories are read."""

    split: Literal["modapte", "modlewis"] = option(
        "modapte", "modapte: stories that an indexer looked at for topics; modlewis: those also that have none."
    )
    categories: Literal["topics", "all"] = option("topics", "all: places, people, organisations and exchanges too, with a prefix.")


class TibkatOptions(Options):
    """Which records are read."""

    language: Literal["all", "de", "en"] = option("all", "Language of the records, as the catalogue files them.")


_READERS: dict[str, tuple[str, type[Options]]] = {
    "eurlex57k": ("eurlex57k", Eurlex57kOptions),
    "codiesp": ("codiesp", CodiespOptions),
    "reuters-21578": ("reuters_21578", ReutersOptions),
    "tibkat": ("tibkat", TibkatOptions),
}


def _refuse_options(name: str, options: Options) -> None:
    """Tables hold what was chosen when they were written: options of the original files cannot choose again."""
    given = [key for key, value in options.model_dump().items() if value != type(options).model_fields[key].default]
    if given:
        raise UsageError(
            f"{', '.join(given)} cannot be chosen in tables: they are options of the files that the publisher hands out",
            where=f"dataset '{name}'",
            expected=f"the distribution of {name}, or none of its options",
            todo=f"`plant data info {name}` says where to get the distribution; or leave the options out",
        )


def _loader(name: str, module: str) -> Callable[[DataSection, Any], Dataset]:
    def load(data: DataSection, options: Any) -> Dataset:
        from plant_datasets.corpora.counting import with_card
        from plant_datasets.files import load_files, recognise

        if recognise(data) is None:
            read: Dataset = import_module(f"plant_datasets.corpora.{module}").load(data, options)
        else:
            _refuse_options(name, options)
            read = load_files(data)
        return with_card(read, CARDS[name])

    return load


def _spec(name: str) -> DatasetSpec:
    module, options = _READERS.get(name, ("downloads", NoOptions))
    summary = f"{CARDS[name].title}. `plant data info {name}` says where to get it."
    return DatasetSpec(name=name, summary=summary, options=options, load=_loader(name, module), card=CARDS[name])


CORPORA = tuple(_spec(name) for name in CARDS)
