"""Formats of corpora, predictions and vocabularies, corpora by name, and generated notes; this
module registers them.

A format says of a file whether it knows it (`recognise`), from what was read once for all of
them, and reads it (`load`, `read`). They are asked in the order of the tables below.

Corpora. Tables: `table_corpora`, with `guessed_columns`, `column_words`, `label_columns`,
`people_columns` and `binary_answers` for what their columns mean, `label_forms` and
`label_separators` for what their cells hold, `numbered_columns` and `merged_cells`. Files with a
form of their own: `line_formats`, `record_formats`, `annotations`, `annotation_formats`,
`literature` and `library_records`, `bibtex`, `marc`, `arff`, `xmlrepository`, `annif`,
`hub_datasets`. By name: `named_corpora`, `mimic`. `synthetic_clinic` makes notes with gold
evidence. `corpus_reader` joins files, splits and bad rows.

Predictions of other tools: `prediction_matrices`: numpy, scipy, numbers in text, the XML
repository; `prediction_lines`: fastText, `label:score`, lists, TREC; `prediction_objects`: JSON,
Annif; `prediction_tables`, with `prediction_cells`: tables whose columns and cells are found by
what the corpus has. `scored_labels`: what all of them hand on. Vocabularies: `concepts` (SKOS,
other RDF, JSKOS, and the language of titles), `classifications` (ICD, ClaML, MeSH, OBO),
`vocabulary_tables`.

It needs polars, numpy and scipy, and packages for single formats (pybtex, pymarc; rdflib of the
extra `skos`), which are imported for their files alone. Of the core it uses readers of lines and
tables (`data`, by the kit). The core itself reads predictions in tables with the columns `doc_id`,
`labels` and `scores`, or `doc_id`, `label` and `score`, and vocabularies in tables with `label`,
`title` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import yaml

from plant_cli.api import (
    DatasetCard,
    DatasetSpec,
    NoOptions,
    Options,
    PredictionsSpec,
    VocabularySpec,
    hookimpl,
    option,
)
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
        load=f"plant_formats.{where}load",
        recognise=f"plant_formats.{where}recognise",
        guess="plant_formats.table_corpora:guess" if name == "files" else None,
        write=None if write is None else f"plant_formats.annif:{write}",
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
            load="plant_formats.synthetic_clinic:load",
        ),
        *FORMATS,
        *(
            DatasetSpec(
                name=name,
                summary=f"{card.title}. `plant data info {name}` says where to get it.",
                options=_OPTIONS.get(name, NoOptions),
                load=partial(Named("plant_formats.named_corpora:load"), name),
                card=card,
            )
            for name, card in CARDS.items()
        ),
    ]


_Spec = TypeVar("_Spec", PredictionsSpec, VocabularySpec)

# name, summary, where `recognise` and `read` are
_PREDICTIONS: Sequence[tuple[str, str, str]] = (
    ("npz", "A sparse matrix of documents and labels, by scipy.", "prediction_matrices:MATRIX."),
    (
        "npy",
        "A matrix of scores, or of labels best first, by numpy.",
        "prediction_matrices:ARRAY.",
    ),
    (
        "annif-folder",
        "Annif's suggestions: a file for each document, with lines of URI, label and score.",
        "prediction_objects:SUGGESTIONS.",
    ),
    (
        "annif-json",
        "Annif's JSON lines, or its list for a batch of documents.",
        "prediction_objects:ANNIF_RESULTS.",
    ),
    (
        "json-object",
        "A JSON object with lists of labels, or scores by label, for each document.",
        "prediction_objects:PAIRS_BY_ID.",
    ),
    (
        "json-lists",
        "A JSON list with a list for each document.",
        "prediction_objects:NESTED_LISTS.",
    ),
    (
        "xmlrepository",
        "XML repository: a header, and number:score for each label of a document.",
        "prediction_matrices:SPARSE_TEXT.",
    ),
    ("trec", "A TREC run: topic, Q0, label, rank, score and run.", "prediction_lines:TREC."),
    (
        "fasttext",
        "fastText: `__label__a 0.9 __label__b 0.1` for each document.",
        "prediction_lines:FASTTEXT.",
    ),
    (
        "scored-lines",
        "Lines of label:score, label=score or label (score), perhaps behind an id.",
        "prediction_lines:SCORED.",
    ),
    (
        "dense-text",
        "A matrix of numbers in text, a line for each document.",
        "prediction_matrices:DENSE_TEXT.",
    ),
    (
        "label-lines",
        "Lines of labels, best first, perhaps behind an id.",
        "prediction_lines:RANKED_LINES.",
    ),
    (
        "table",
        "Any table with columns for documents, labels and scores, or a column for each label, "
        "each rank or each document.",
        "prediction_tables:",
    ),
)


@hookimpl
def plant_register_predictions() -> Sequence[PredictionsSpec]:
    """The formats of predictions, in the order in which they are asked."""
    return _list_specs(PredictionsSpec, _PREDICTIONS)


_VOCABULARIES: Sequence[tuple[str, str, str]] = (
    ("annif-tsv", "Annif's TSV: a URI, a tab and a title.", "vocabulary_tables:URI_LINES."),
    (
        "icd-titles",
        "Titles of ICD-9-CM, ICD-10-CM and ICD-10-PCS: an order file, or a list.",
        "vocabulary_tables:ICD_TITLES.",
    ),
    ("obo", "An ontology in OBO.", "classifications:OBO."),
    (
        "rdf",
        "SKOS, SKOS-XL and other RDF (Turtle, RDF/XML, N-Triples, JSON-LD), and JSKOS.",
        "concepts:RDF.",
    ),
    (
        "xml-classification",
        "Classifications in XML: ICD-10-CM's tabular list, ClaML, MeSH.",
        "classifications:XML_CLASSIFICATION.",
    ),
    (
        "table",
        "Any table of ids and titles, perhaps in several languages.",
        "vocabulary_tables:VOCABULARY_TABLE.",
    ),
)


@hookimpl
def plant_register_vocabularies() -> Sequence[VocabularySpec]:
    """The formats of vocabularies, in the order in which they are asked."""
    return _list_specs(VocabularySpec, _VOCABULARIES)


def _list_specs(kind: type[_Spec], listed: Sequence[tuple[str, str, str]]) -> list[_Spec]:
    return [
        kind(
            name=name,
            summary=summary,
            order=order,
            recognise=f"plant_formats.{where}recognise",
            read=f"plant_formats.{where}read",
        )
        for order, (name, summary, where) in enumerate(listed, start=1)
    ]
