"""The datasets: tables, formats of other tools, published corpora by name, and generated notes;
this module registers them.

A dataset says of a path whether it knows it (`recognise`) and reads it as documents with labels.
Tables: `table_corpora`, with `guessed_columns`, `column_words`, `label_columns`, `people_columns`
and `binary_answers` for what their columns mean, `numbered_columns` and `merged_cells`. Files with
a form of their own: `line_formats`, `record_formats`, `annotations`, `annotation_formats`,
`literature` and `library_records`, `bibtex`, `marc`, `arff`, `xmlrepository`, `annif`,
`hub_datasets`. Corpora by name: `named_corpora`, `mimic`.
`synthetic_clinic` makes notes with gold evidence. `corpus_reader` joins files, splits and bad rows.

It needs polars, and packages for single formats (pybtex, pymarc), which are imported for their
files alone. Of the core it uses readers of lines and cells (`data`, by the kit), of
`plant_formats` the dots of ICD codes (`classifications`) and sparse matrices in files
(`prediction_matrices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import yaml

from plant_cli.api import DatasetCard, DatasetSpec, NoOptions, Options, hookimpl, option
from plant_cli.api.functions import Named

CARDS: dict[str, DatasetCard] = {
    name: DatasetCard(**fields)
    for name, fields in yaml.load(
        Path(__file__).with_name("cards.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader
    ).items()
}


class SyntheticClinicOptions(Options):
    """How large the generated corpus is."""

    documents: int = option(2000, "Documents, over all splits.", ge=10)
    labels: int = option(300, "Codes that the corpus is about.", ge=5, le=3000)
    seed: int = option(0, "Equal seeds give equal corpora, byte for byte.", ge=0)


class FeatureOptions(Options):
    """Where the names of features are."""

    features: str | None = option(
        None,
        "A file with the name of each feature on a line (default: features.txt beside it).",
        path=True,
    )


class AttentionXMLOptions(Options):
    """Which of the texts are read."""

    texts: Literal["raw", "prepared"] = option(
        "raw", "raw: train_raw_texts.txt where there is one; prepared: train_texts.txt."
    )


class HubOptions(Options):
    """Which part of a data set of the hub is read."""

    configuration: str | None = option(None, "Configuration of the data set on the hub.")
    revision: str | None = option(None, "Commit, tag or branch of the data set on the hub.")


class Eurlex57kOptions(Options):
    """What of a law is read."""

    attachments: bool = option(False, "Read attachments, too.")


class CodiespOptions(Options):
    """Which codes are read."""

    codes: Literal["all", "D", "P"] = option("all", "D: diagnoses; P: procedures.")


class ReutersOptions(Options):
    """Which stories and categories are read."""

    split: Literal["modapte", "modlewis"] = option(
        "modapte", "modapte: stories that an indexer saw; modlewis: those also without topics."
    )
    categories: Literal["topics", "all"] = option(
        "topics", "all: places, people, organisations and exchanges too, with a prefix."
    )


class TibkatOptions(Options):
    """Which records are read."""

    language: Literal["all", "de", "en"] = option(
        "all", "Language of the records, as the catalogue files them."
    )


class MimicOptions(Options):
    """Texts and splits."""

    splits: str | None = option(
        None,
        "The public file or folder of splits (default: patients are split by a hash).",
        path=True,
    )
    text: Literal["e23", "caml", "alpha", "none"] = option(
        "e23", "e23: Edin et al.; caml: Mullenbach et al.; alpha: letters; none: all."
    )
    deid: Literal["keep", "mask"] = option("keep", "mask: de-identified parts become a blank.")


class Mimic3Options(MimicOptions):
    """How codes are read."""

    caml_quirk: bool = option(False, "Read procedures as numbers, as CAML did: 00.66 becomes 66.")


class Top50Options(Mimic3Options):
    """Which codes are the 50."""

    top50: Literal["mullenbach", "recount"] = option(
        "mullenbach", "mullenbach: the published list; recount: the most frequent of train."
    )


class FewOptions(Mimic3Options):
    """Two protocols that must not be mixed."""

    protocol: Literal["full", "restricted"] = option(
        "full", "full: evaluated on rare codes; restricted: rare codes and their documents."
    )


class Rare50Options(MimicOptions):
    """The lists are needed."""

    splits: str = option(
        help="KEPT's collectrare50data.py, which holds the lists; it is read and not run.",
        path=True,
    )


class ReferenceOptions(Options):
    """Which headings are read."""

    thesaurus: str | None = option(
        None, "MARC: headings of this vocabulary alone, such as gnd, lcsh, mesh or fast."
    )


_OPTIONS: dict[str, type[Options]] = {
    "xmlrepository-features": FeatureOptions,
    "attentionxml": AttentionXMLOptions,
    "libsvm": FeatureOptions,
    "huggingface-dataset": HubOptions,
    "references": ReferenceOptions,
    "eurlex57k": Eurlex57kOptions,
    "codiesp": CodiespOptions,
    "reuters-21578": ReutersOptions,
    "tibkat": TibkatOptions,
    "mimic3-full": Mimic3Options,
    "mimic3-top50": Top50Options,
    "mimic3-clean": Mimic3Options,
    "mimic3-rare50": Rare50Options,
    "mimic3-few": FewOptions,
    "mimic4-icd10": MimicOptions,
    "mimic4-icd9": MimicOptions,
}
_TABLES = (
    "A table with a split column, or a folder of train, validation and test tables: Parquet, "
    "JSON lines, CSV or TSV."
)
_XML = (
    "XML repository with texts: trn.json.gz and lbl.json.gz, or trn_X.txt, trn_X_Y.txt and "
    "Y.txt; filter files."
)
_TOOLS = (
    "JSON of spaCy, Prodigy, doccano, Label Studio, BioASQ, Argilla or Vertex AI: lines, or "
    "one list."
)
_REFERENCES = (
    "Records of literature: PubMed (XML or text), RIS, EndNote (.enw), BibTeX, and MARC or Dublin "
    "Core in XML; subject headings or keywords are the labels."
)
_HUB = "Hugging Face: a folder that save_to_disk left, or a data set of the hub."
# name, summary, where `load` and `recognise` are (a module, or a `LineFormat` in one), and the
# function that writes
_READERS: Sequence[tuple[str, str, str, str | None]] = (
    ("files", _TABLES, "table_corpora:", None),
    ("xmlrepository", _XML, "xmlrepository:", None),
    (
        "xmlrepository-features",
        "XML repository, first format: a line 'N D L', then labels and feature:value.",
        "line_formats:XML_FEATURES.",
        None,
    ),
    (
        "attentionxml",
        "AttentionXML: train_texts.txt and train_labels.txt.",
        "line_formats:ATTENTIONXML.",
        None,
    ),
    (
        "pecos",
        "PECOS and X-Transformer: X.trn.txt, Y.trn.npz and output-items.txt.",
        "line_formats:PECOS.",
        None,
    ),
    (
        "text2text",
        "PECOS's text2text: numbers of labels, a tab and the text on each line.",
        "line_formats:TEXT2TEXT.",
        None,
    ),
    (
        "libmultilabel",
        "LibMultiLabel: an id, labels separated by blanks, and the text, separated by tabs.",
        "line_formats:LIBMULTILABEL.",
        None,
    ),
    (
        "libsvm",
        "LibSVM, multi-label: labels, then feature:value counted from 1.",
        "line_formats:LIBSVM.",
        None,
    ),
    (
        "annif-tsv",
        "Annif's short documents: a text, a tab and <uri>s on each line.",
        "line_formats:ANNIF_TSV.",
        "write_tsv",
    ),
    (
        "annif-csv",
        "Annif's CSV: columns text and subject_uris, perhaps document_id.",
        "annif:csv_",
        "write_csv",
    ),
    (
        "annif-jsonl",
        "Annif's JSON lines: document_id, text and subjects with uri and label.",
        "line_formats:ANNIF_JSONL.",
        "write_jsonl",
    ),
    (
        "annif-folder",
        "Annif's full texts: document.txt with document.tsv or document.key.",
        "annif:folder_",
        "write_folder",
    ),
    ("huggingface-dataset", _HUB, "hub_datasets:", None),
    (
        "fasttext",
        "fastText: `__label__a __label__b text` on each line.",
        "annotation_formats:FASTTEXT_LINES.",
        None,
    ),
    ("annotations", _TOOLS, "annotations:ANNOTATIONS.", None),
    ("references", _REFERENCES, "literature:REFERENCES.", None),
    (
        "arff",
        "ARFF of MULAN (with its XML file of labels) and MEKA (-C n in the first line), dense or "
        "sparse.",
        "arff:",
        None,
    ),
    (
        "stackexchange",
        "Stack Exchange: Posts.xml; titles and bodies of questions, with their tags.",
        "annotation_formats:POSTS.",
        None,
    ),
)
_TABLE_READER, *FORMATS = (
    DatasetSpec(
        name=name,
        summary=summary,
        options=_OPTIONS.get(name, NoOptions),
        load=f"plant_datasets.{where}load",
        recognise=f"plant_datasets.{where}recognise",
        guess="plant_datasets.table_corpora:guess" if name == "files" else None,
        write=None if write is None else f"plant_datasets.annif:{write}",
        hub=name == "huggingface-dataset",
        answers=name in ("files", "annotations"),
    )
    for name, summary, where, write in _READERS
)


@hookimpl
def plant_register_datasets() -> Sequence[DatasetSpec]:
    """The datasets of this plugin."""
    return [
        _TABLE_READER,
        DatasetSpec(
            name="synthetic-clinic",
            summary="Generated notes that look clinical, with codes, a long tail, negations and "
            "gold evidence; needs no download.",
            options=SyntheticClinicOptions,
            load="plant_datasets.synthetic_clinic:load",
        ),
        *FORMATS,
        *(
            DatasetSpec(
                name=name,
                summary=f"{card.title}. `plant data info {name}` says where to get it.",
                options=_OPTIONS.get(name, NoOptions),
                load=partial(Named("plant_datasets.named_corpora:load"), name),
                card=card,
            )
            for name, card in CARDS.items()
        ),
    ]
