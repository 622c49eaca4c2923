"""The formats that are registered. Their options stand here, and their modules are imported when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from plant_cli.api import DataSection, Dataset, DatasetSpec, NoOptions, Options, option


class FeatureOptions(Options):
    """Where the names of features are."""

    features: str | None = option(None, "A file with the name of each feature on a line (default: features.txt beside).", path=True)


class AttentionXMLOptions(Options):
    """Which of the texts are read."""

    texts: Literal["raw", "prepared"] = option("raw", "raw: train_raw_texts.txt where there is one; prepared: train_texts.txt.")


class HubOptions(Options):
    """Which part of a data set of the hub is read."""

    configuration: str | None = option(None, "Configuration of the data set on the hub.")
    revision: str | None = option(None, "Commit, tag or branch of the data set on the hub.")


def _format(name: str, summary: str, options: type[Options] = NoOptions) -> DatasetSpec:
    """A format by the functions `load`, `recognise` and `write` of the module of its name."""
    module = f"plant_datasets.formats.{name.replace('-', '_')}"

    def call(function: str) -> Callable[..., Any]:
        return lambda *arguments: getattr(import_module(module), function)(*arguments)

    load: Callable[[DataSection, Any], Dataset] = call("load")
    recognise: Callable[[DataSection], str | None] = call("recognise")
    write: Callable[[Dataset, Path, str], Sequence[str]] = call("write")
    return DatasetSpec(name=name, summary=summary, options=options, load=load, recognise=recognise, write=write)


FORMATS = (
    _format("xmlrepository", "XML repository with texts: trn.json.gz and lbl.json.gz, or trn_X.txt, trn_X_Y.txt and Y.txt; filter files."),
    _format("xmlrepository-features", "XML repository, first format: a line 'N D L', then labels and feature:value.", FeatureOptions),
    _format("attentionxml", "AttentionXML: train_texts.txt and train_labels.txt.", AttentionXMLOptions),
    _format("pecos", "PECOS and X-Transformer: X.trn.txt, Y.trn.npz and output-items.txt."),
    _format("text2text", "PECOS's text2text: numbers of labels, a tab and the text on each line."),
    _format("libmultilabel", "LibMultiLabel: an id, labels parted by blanks, and the text, parted by tabs."),
    _format("libsvm", "LibSVM, multi-label: labels, then feature:value counted from 1.", FeatureOptions),
    _format("annif-tsv", "Annif's short documents: a text, a tab and <uri>s on each line."),
    _format("annif-csv", "Annif's CSV: columns text and subject_uris, perhaps document_id."),
    _format("annif-jsonl", "Annif's JSON lines: document_id, text and subjects with uri and label."),
    _format("annif-folder", "Annif's full texts: document.txt beside document.tsv or document.key."),
    _format("huggingface-dataset", "Hugging Face: a folder that save_to_disk left, or a data set of the hub.", HubOptions),
)
