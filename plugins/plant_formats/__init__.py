"""The formats of predictions and of vocabularies; this module registers them.

A format says of a file whether it knows it (`recognise`), from what was read once for all of
them, and reads it (`read`). They are asked in the order of the tables below; the last takes any
table. Predictions of other tools: `prediction_matrices`: numpy, scipy, numbers in text, the XML
repository; `prediction_lines`: fastText, `label:score`, lists, TREC; `prediction_objects`: JSON,
Annif; `prediction_tables`, with `prediction_cells`: tables whose columns and cells are found by
what the corpus has. `scored_labels`: what all of them hand on. Vocabularies: `concepts` (SKOS,
other RDF, JSKOS, and the language of titles), `classifications` (ICD, ClaML, MeSH, OBO),
`vocabulary_tables`.

It needs polars, numpy and scipy, and rdflib for RDF (extra `skos`). Of the core it uses readers of
lines and tables (`data`, by the kit). The core itself reads predictions in tables with the columns
`doc_id`, `labels` and `scores`, or `doc_id`, `label` and `score`, and vocabularies in tables with
`label`, `title` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from plant_cli.api import PredictionsSpec, VocabularySpec, hookimpl

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
