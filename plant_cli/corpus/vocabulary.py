"""A vocabulary of labels: their titles, descriptions, other names and parents, from a table, a SKOS file or a list of ICD titles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from plant_cli.api.corpus import Dataset
from plant_cli.api.errors import DataError
from plant_cli.api.reporting import SilentReporter
from plant_cli.api.sections import DataSection
from plant_cli.corpus.icd_titles import read_icd_titles
from plant_cli.corpus.skos import find_rdf_syntax, read_skos
from plant_cli.corpus.titles import read_titles
from plant_cli.corpus.vocabulary_tables import LISTS, SCHEMA, read_vocabulary_table
from plant_cli.kit.compression import decode_text, find_fallback, read_bytes
from plant_cli.kit.labels import find_used_labels

_PARQUET = b"PAR1"
_OWN = "_of_dataset"
_EXPECTED = "a table (TSV, CSV, Parquet, JSON lines), SKOS (Turtle, RDF/XML, JSON-LD) or a file of ICD titles"


def read_vocabulary(path: Path, language: str | None = None, encoding: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """Read a vocabulary, whatever its format.

    Args:
        path: the file, perhaps compressed.
        language: of the titles, such as `en` (default: English, else the one that has most).
        encoding: of a text file that is not in UTF-8; it is that of the documents, which the vocabulary often does not share.

    Returns:
        A table of the schema `vocabulary_tables.SCHEMA`, each label once, and remarks: what was recognised, what is odd.

    Raises:
        DataError: the file cannot be read, or holds no labels.
    """
    content = read_bytes(path, _EXPECTED)
    encoding = find_fallback(content, encoding)
    text = "" if content.startswith(_PARQUET) else decode_text(content, encoding, "the vocabulary", str(path))
    syntax = find_rdf_syntax(text)
    titles = None if syntax else read_icd_titles(text)
    if syntax is not None:
        table, remarks = read_skos(text, syntax, language, path)
    elif titles is not None:
        table, remarks = titles
    else:
        table, remarks = read_vocabulary_table(path, text, language, encoding)
    if table.is_empty():
        raise DataError("the vocabulary holds no labels", where=str(path), expected=_EXPECTED, todo="check the file")
    return table.unique("label", keep="first", maintain_order=True), [f"{path}: {remark}" for remark in remarks]


def apply_vocabulary(dataset: Dataset, data: DataSection) -> tuple[pl.LazyFrame, list[str]]:
    """The labels of a dataset as its vocabulary knows them: what the dataset itself knows fills the gaps.

    A label that the vocabulary writes with other dots or in other case is found too, where only one label of it is so written; it keeps
    the spelling of the documents.
    """
    table, remarks = read_vocabulary(Path(str(data.vocabulary)), data.vocabulary_language, data.encoding)
    used = find_used(dataset)
    aligned = align(table, used)
    if aligned.height:
        remarks.append(
            f"{aligned.height:,} labels of the documents were found by leaving aside dots and case, such as '{aligned['label'][0]}'"
        )
    table = _respell(table, aligned, used)
    found = table.join(used.to_frame("label"), on="label", how="semi")
    remarks.append(f"{found.height:,} of {used.len():,} labels of the documents are in {data.vocabulary}")
    titled = table.filter(pl.col("title").is_in(used.implode()))
    if titled.height > found.height:
        title, label = titled["title"][0], titled["label"][0]
        remarks.append(f"{titled.height:,} labels of the documents are titles in the vocabulary, not labels: '{title}' is '{label}' there")
    outdated = found.filter(pl.col("deprecated"))
    if outdated.height:
        label, instead = outdated.row(0, named=True)["label"], outdated["replaced_by"][0].to_list()
        successor = f", replaced by {', '.join(instead)}" if instead else ""
        remarks.append(f"{outdated.height:,} labels of the documents are deprecated in the vocabulary, such as '{label}'{successor}")
    said = SilentReporter()
    own = read_titles(dataset, said)
    return _complete(table, own).lazy(), [*remarks, *said.notes]


def find_used(dataset: Dataset) -> pl.Series:
    """The labels that documents have, sorted."""
    return find_used_labels(dataset.splits.values(), ", ".join(dataset.files) or "the dataset")


def align(table: pl.DataFrame, used: Sequence[str] | pl.Series) -> pl.DataFrame:
    """Rows for labels of the documents that the table writes with other dots or in other case, in the spelling of the documents.

    The column `written` has the spelling of the table.
    """
    key = pl.col("label").str.replace_all(".", "", literal=True).str.to_lowercase().alias("key")
    missing = pl.DataFrame({"label": used}, schema={"label": pl.String}).join(table, on="label", how="anti").with_columns(key)
    keyed = table.with_columns(key).filter(pl.col("key").is_unique()).rename({"label": "written"})
    return missing.join(keyed, on="key", how="inner", maintain_order="left").select(*SCHEMA, "written")


def _respell(table: pl.DataFrame, aligned: pl.DataFrame, used: pl.Series) -> pl.DataFrame:
    """The table in the spelling of the documents: labels, and where parents and successors name them, each label once."""
    replaced = aligned.filter(~pl.col("written").is_in(used.implode())).unique("written", keep="first", maintain_order=True)
    kept = table.join(replaced, left_on="label", right_on="written", how="anti", maintain_order="left")
    spelling = dict(replaced.select("written", "label").iter_rows())
    named = (pl.col(name).list.eval(pl.element().replace(spelling)) for name in ("parents", "replaced_by"))
    return pl.concat([aligned.select(*SCHEMA), kept]).with_columns(named)


def _complete(table: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The vocabulary, with what the dataset's own table says where it says nothing: empty cells and empty lists are gaps."""
    joined = table.join(own, on="label", how="full", coalesce=True, maintain_order="left_right", suffix=_OWN)
    empty = pl.lit([], dtype=pl.List(pl.String))
    filled: list[pl.Expr] = []
    for name in own.columns[1:]:
        given = pl.col(name) if name not in LISTS else pl.when(pl.col(name).list.len() > 0).then(pl.col(name))
        found = pl.coalesce(given, f"{name}{_OWN}")
        filled.append((found.fill_null(empty) if name in LISTS else found).alias(name))
    return joined.select("label", *filled, pl.col("replaced_by").fill_null(empty)).with_columns(pl.col("deprecated").fill_null(False))
