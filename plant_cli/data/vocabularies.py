"""Controlled vocabularies: tables, SKOS and ICD titles."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from plant_cli.api import DataError, DataSection, Dataset, Reporter, SilentReporter, first_line, missing_package
from plant_cli.data.documents import find_used_labels
from plant_cli.data.label_cells import split_names
from plant_cli.data.lines import decode_text, find_fallback, read_bytes
from plant_cli.data.tables import collect, scan_table, trim
from plant_cli.data.text_tables import show_names

System = Literal["ICD-9-CM diagnoses", "ICD-9-CM procedures", "ICD-10-CM", "ICD-10-PCS"]
SYSTEMS: tuple[System, ...] = get_args(System)


def add_dot(code: str, system: System) -> str:
    """A code with its dot: 4019 is 401.9, E8859 is E885.9, the procedure 0066 is 00.66, E119 of ICD-10 is E11.9; ICD-10-PCS has none.

    Args:
        code: without it.
        system: what it is a code of.
    """
    if system == "ICD-10-PCS":
        return code
    place = 2 if system == "ICD-9-CM procedures" else 4 if system == "ICD-9-CM diagnoses" and code.startswith("E") else 3
    return code if len(code) <= place else f"{code[:place]}.{code[place:]}"


LISTED_FIELDS = ("alternatives", "parents", "replaced_by")
VOCABULARY_SCHEMA = {
    "label": pl.String(),
    "title": pl.String(),
    "description": pl.String(),
    "alternatives": pl.List(pl.String()),
    "parents": pl.List(pl.String()),
    "deprecated": pl.Boolean(),
    "replaced_by": pl.List(pl.String()),
}
_NAMES = {  # by column of the schema: how tables call it, in small letters with _ for blanks
    "label": ("label", "uri", "id", "code", "identifier", "notation"),
    "title": ("title", "name", "label_text", "long_title", "preflabel", "preferred_label", "heading"),
    "description": ("description", "definition", "scope_note", "scopenote", "note"),
    "alternatives": (
        "alternatives", "alternative_names", "alternative_titles", "altlabels", "altlabel", "synonyms", "other_names", "aliases",
    ),
    "parents": ("parents", "parent", "broader"),
    "deprecated": ("deprecated",),
    "replaced_by": ("replaced_by",),
}  # fmt: skip
_LANGUAGE = re.compile(r"(?:label|title|preflabel)_([a-z]{2,3})(?:[-_]\w+)?")
_TSV_LINE = re.compile(r"<([^<>\t]+)>\t([^\t]+)(?:\t(\S*))?")


def read_vocabulary_table(path: Path, text: str, language: str | None, encoding: str | None) -> tuple[pl.DataFrame, list[str]]:
    """A table of labels: Annif's TSV without a heading, else any table whose columns are named in a way that is understood."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if lines and all(map(_TSV_LINE.fullmatch, lines[:20])):
        rows, bad = _match_lines(lines, _TSV_LINE, "<uri>, tab, label")
        table = pl.DataFrame([row[:2] for row in rows], schema=["label", "title"], orient="row")
        return tidy_labels(table), [f"Annif's TSV vocabulary of {len(rows):,} labels", *bad]
    table = collect(scan_table(path, encoding=encoding), str(path))
    columns = _by_key(table.columns)
    sources = {name: column for name in VOCABULARY_SCHEMA if (column := _choose(columns, name)) is not None}
    languages = {match[1]: name for key, name in columns.items() if (match := _LANGUAGE.fullmatch(key))}
    if languages:
        chosen = language or ("en" if "en" in languages else next(iter(languages)))
        if chosen not in languages:
            raise _no_language(chosen, f"{path}, columns {show_names(columns.values())}", languages)
        sources["title"] = languages[chosen]
    if "label" not in sources or not {"title", "description"} & sources.keys():
        raise DataError(
            "the vocabulary has no column for the labels, or none for their titles",
            where=f"{path}, columns {show_names(table.columns)}",
            expected=f"one of {', '.join(_NAMES['label'])}, and title or label_en; perhaps {', '.join(list(VOCABULARY_SCHEMA)[2:])}",
            todo="rename the columns",
        )
    nested = next((column for name, column in sources.items() if name not in LISTED_FIELDS and table.schema[column].is_nested()), None)
    if nested is not None:
        raise DataError(
            f"the column '{nested}' of the vocabulary holds lists or objects",
            where=f"{path}, column {nested}",
            expected="one text in each cell; only other names, parents and successors are lists",
            todo="write one label on each row, with one title",
        )
    wanted = [pl.col(column).alias(name) for name, column in sources.items()]
    return tidy_labels(table.select(wanted)), [f"a table of {table.height:,} labels; titles from the column {sources.get('title')}"]


def _no_language(language: str, where: str, known: Iterable[str]) -> DataError:
    what, todo = f"the vocabulary has no titles in '{language}'", "name another with --vocabulary-language"
    return DataError(what, where=where, expected=f"one of {', '.join(known)}", todo=todo)


def _match_lines(lines: Sequence[str], pattern: re.Pattern[str], form: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """The groups of each line that fits a pattern; and a remark on the others."""
    matches = [pattern.fullmatch(line) for line in lines]
    bad = [str(number) for number, match in enumerate(matches, start=1) if match is None]
    remarks = [f"{len(bad):,} lines are not {form}, and are left out: {', '.join(bad[:10])}"] if bad else []
    return [match.groups() for match in matches if match is not None], remarks


def _by_key(names: Sequence[str]) -> dict[str, str]:
    return {name.strip().lower().replace(" ", "_"): name for name in names}


def _choose(columns: dict[str, str], name: str) -> str | None:
    """The column of a table that holds what the schema calls so."""
    return next((columns[key] for key in _NAMES[name] if key in columns), None)


def tidy_labels(table: pl.DataFrame) -> pl.DataFrame:
    """A table of labels in the schema: blanks cut off, empty cells null, lists made of cells such as `a|b` or `["a", "b"]`."""
    columns = []
    for name, dtype in VOCABULARY_SCHEMA.items():
        given = table.get_column(name, default=None)
        if given is None:
            columns.append(pl.lit([] if name in LISTED_FIELDS else False if name == "deprecated" else None, dtype=dtype).alias(name))
        elif name in LISTED_FIELDS:
            columns.append(pl.lit(pl.Series(name, [split_names(cell) for cell in given.to_list()], dtype=dtype)).alias(name))
        elif name == "deprecated":
            columns.append(pl.col(name).cast(pl.String).str.to_lowercase().is_in(["true", "1", "yes"]).fill_null(False))
        else:
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    named = table.with_columns(pl.col("label").cast(pl.String).str.replace(r"^<(.*)>$", "$1")).select(columns)
    return named.filter(pl.col("label").is_not_null())


VOCABULARY_COLUMNS = ("label", "title", "description", "alternatives", "parents", "deprecated")
_LOOKED_AT = 2000  # labels of a table, for a similar one
_ENOUGH = 0.5  # of the labels have a title: with fewer, the table may write its labels in another way


def read_titles(dataset: Dataset, reporter: Reporter) -> pl.DataFrame:
    """`label`, `title` (null where it is empty) and the other `VOCABULARY_COLUMNS`, each label once; a note names a label with
    several titles.
    """
    if dataset.labels is None:
        return pl.DataFrame(schema={name: VOCABULARY_SCHEMA[name] for name in VOCABULARY_COLUMNS})
    for name, dtype in dataset.labels.select("label", "title").collect_schema().items():
        if dtype.is_nested():
            raise DataError(
                f"the column '{name}' of the table of titles holds {dtype}, not text",
                where="the table of titles",
                expected="one text for each label",
                todo=f"write the {name}s as text, or name another table with --titles",
            )
    columns = (trim(pl.col("label").cast(pl.String)), trim(pl.col("title").cast(pl.String)).replace("", None))
    further = [name for name in VOCABULARY_COLUMNS[2:] if name in dataset.labels.collect_schema()]
    given = collect(dataset.labels.select(*columns, *further), "the table of titles").filter(pl.col("label") != "")
    rows = tidy_labels(given).select(*VOCABULARY_COLUMNS)
    several = (
        rows.select("label", "title")
        .unique(maintain_order=True)
        .filter(pl.col("label").is_duplicated())["label"]
        .unique(maintain_order=True)
    )
    if len(several):
        reporter.note(f"{len(several):,} labels have several titles in the table of titles, such as '{several[0]}': the first counts")
    return rows.unique("label", keep="first", maintain_order=True)


def find_titled(titles: pl.DataFrame) -> pl.DataFrame:
    """The rows of `read_titles` that have a title and are not deprecated: labels that can be suggested without a training document."""
    return titles.filter(pl.col("title").is_not_null() & ~pl.col("deprecated"))


def warn_untitled(labels: pl.DataFrame, titles: pl.DataFrame, reporter: Reporter) -> None:
    """Warn where fewer than half of the labels have a title, though the table holds titles."""
    missing = labels.filter(pl.col("title").is_null())["label"]
    titled = len(labels) - len(missing)
    if titled >= _ENOUGH * len(labels) or titles["title"].is_null().all():
        return
    foreign = titles.filter(pl.col("title").is_not_null()).join(labels, on="label", how="anti")["label"]
    near = get_close_matches(missing[0], foreign.head(_LOOKED_AT), n=1) or foreign.head(1).to_list()
    examples = f"corpus '{missing[0]}'" + "".join(f", table '{label}'" for label in near)
    found = f"only {titled:,} of the {len(labels):,} labels of train have a title" if titled else "no label of train has a title"
    reporter.warn(f"{found} in the table of titles ({examples}): are labels written alike in both? (--titles names another table)")


_ORDER = re.compile(r"(\d{5}) ([0-9A-Z]{3,7}) +([01]) (.{60}) (\S.*)")
_LIST = re.compile(r"([0-9A-Z]{2,7})(?: {1,7}|\t)([^\s\t][^\t]*)")
_SAMPLE = 200
_MOST = 0.98
_ICD9_DIAGNOSIS = re.compile(r"\d{3,5}|[EV]\d{2,5}")
_ICD9_PROCEDURE = re.compile(r"\d{2,4}")
_ICD10_CM = re.compile(r"[A-Z]\d[0-9A-Z][0-9A-Z]{0,4}")
_ICD10_PCS = re.compile(r"[0-9A-HJ-NP-Z]{3,7}")


def read_icd_titles(text: str) -> tuple[pl.DataFrame, list[str]] | None:
    """Codes with their dot and titles, of an order file (`00001 A00     0 …`) or a list (`A000    Cholera …`); None if it is neither.

    Parents are the longest codes of the file that a code begins with; an order file has the categories, too.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    heading = _by_key(lines[0].split("\t") if lines else ())
    if _choose(heading, "label") and (_choose(heading, "title") or any(map(_LANGUAGE.fullmatch, heading))):
        return None  # the header of a table, whose ids may look like codes
    sample = lines[:_SAMPLE]
    for pattern, kind in ((_ORDER, "order file"), (_LIST, "list")):
        if len(sample) > 1 and sum(bool(pattern.fullmatch(line)) for line in sample) >= _MOST * len(sample):
            return _read_codes(lines, pattern, kind)
    return None


def find_classification(codes: Sequence[str]) -> System | None:
    """Which classification some codes without dots are of; None if of none."""
    if all(_ICD10_CM.fullmatch(code) for code in codes) and not all(re.fullmatch(r"[EV]\d+", code) for code in codes):
        return "ICD-10-CM"
    if all(_ICD9_PROCEDURE.fullmatch(code) for code in codes) and any(len(code) == 4 for code in codes):
        return "ICD-9-CM procedures"
    if all(_ICD9_DIAGNOSIS.fullmatch(code) for code in codes):
        return "ICD-9-CM diagnoses"
    return "ICD-10-PCS" if all(_ICD10_PCS.fullmatch(code) for code in codes) and any(len(code) == 7 for code in codes) else None


def _read_codes(lines: list[str], pattern: re.Pattern[str], kind: str) -> tuple[pl.DataFrame, list[str]] | None:
    rows, bad = _match_lines(lines, pattern, "a code and a title")
    codes = [row[1] if pattern is _ORDER else row[0] for row in rows]
    system = find_classification(codes)
    if system is None:
        return None
    known = set(codes)
    parents = [next((code[:end] for end in range(len(code) - 1, 1, -1) if code[:end] in known), None) for code in codes]
    columns = {
        "label": [add_dot(code, system) for code in codes],
        "title": [row[-1].strip() for row in rows],
        "alternatives": [[short] if pattern is _ORDER and (short := row[3].strip()) != row[-1].strip() else [] for row in rows],
        "parents": [[] if parent is None else [add_dot(parent, system)] for parent in parents],
    }
    table = pl.DataFrame(columns, schema={name: VOCABULARY_SCHEMA[name] for name in columns})
    return tidy_labels(table), [f"{len(rows):,} titles of {system} ({kind})", *bad]


_TURTLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:@prefix|@base|prefix\s|base\s)", re.IGNORECASE)
_TRIPLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*<[^<>\s]+>\s+<[^<>\s]+>\s+[<\"_]")
_XML = re.compile(r"\s*(?:<\?xml(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|<!DOCTYPE.*?\]>|\s)*<(?:\w+:)?RDF\b", re.DOTALL)


def find_rdf_syntax(text: str) -> str | None:
    """The syntax of an RDF file as rdflib names it; None if it is none."""
    head = text[:100_000]
    if _TURTLE.match(head):
        return "turtle"
    if _XML.match(head):
        return "xml"
    if _TRIPLE.match(head):
        return "nt"
    is_json = head.lstrip()[:1] in ("{", "[")
    return "json-ld" if is_json and any(key in head for key in ('"@context"', '"@graph"', '"@id"')) else None


def read_skos(text: str, syntax: str, language: str | None, path: Path) -> tuple[pl.DataFrame, list[str]]:
    """The concepts of a SKOS vocabulary as a table of the schema `VOCABULARY_SCHEMA`, sorted by label, which is the URI; and remarks."""
    rdflib, graph = _parse(text, syntax, path)
    skos, terms = rdflib.SKOS, rdflib.DCTERMS
    concepts = sorted({str(node) for node in graph.subjects(skos.prefLabel, None) if isinstance(node, rdflib.URIRef)})
    spoken = Counter(title.language or "" for title in _literals(graph.objects(None, skos.prefLabel)))
    chosen = language or ("en" if _is_spoken("en", spoken) else max(spoken, key=lambda code: spoken[code], default=""))
    if language is not None and not _is_spoken(language, spoken):
        raise _no_language(language, str(path), (code or "no language" for code, _ in spoken.most_common()))
    rows = []
    for node in map(rdflib.URIRef, concepts):
        titles, names = (list(graph.objects(node, kind)) for kind in (skos.prefLabel, skos.altLabel))
        names += graph.objects(node, skos.hiddenLabel)
        notes = [*graph.objects(node, skos.definition), *graph.objects(node, skos.scopeNote)]
        row = (
            str(node),
            next(iter(_speaking(titles, chosen)), None),
            " ".join(_speaking(notes, chosen)) or None,
            _speaking(names, chosen),
            sorted(str(parent) for parent in graph.objects(node, skos.broader)),
            str(graph.value(node, rdflib.OWL.deprecated) or "").lower() in ("true", "1"),
            sorted(str(successor) for successor in graph.objects(node, terms.isReplacedBy)),
        )
        rows.append(row)
    remarks = [f"SKOS, {len(rows):,} concepts; titles in {chosen or 'no named language'}"]
    if untitled := sum(row[1] is None for row in rows):
        remarks.append(f"{untitled:,} concepts have no title in '{chosen}' (--vocabulary-language names another language)")
    return tidy_labels(pl.DataFrame(rows, schema=VOCABULARY_SCHEMA, orient="row")), remarks


def _speaking(values: Iterable[Any], language: str) -> list[str]:
    """Texts in a language, sorted; of those without any, if there are none in it."""
    given = _literals(values)
    texts = sorted({str(value) for value in given if _is_spoken(language, [value.language or ""])})
    return texts or sorted({str(value) for value in given if not value.language})


def _literals(values: Iterable[Any]) -> list[Any]:
    """Those that are texts: a note may also be a node of its own, with parts."""
    return [value for value in values if hasattr(value, "language")]


def _is_spoken(language: str, tags: Iterable[str]) -> bool:
    """Whether a tag is of a language: `en` and `en-GB` are of `en`, and `en-GB` alone is of `en-GB`."""
    return any(language.lower() in (tag.lower(), tag.lower().split("-")[0]) for tag in tags)


def _parse(text: str, syntax: str, path: Path) -> tuple[Any, Any]:
    try:
        import rdflib
    except ImportError as error:
        raise missing_package("rdflib", "which reads SKOS", "skos", where=str(path)) from error
    logging.getLogger("rdflib").addHandler(logging.NullHandler())  # its warnings quote the file, unseen by what guards the terminal
    fetched: list[bool] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        """Note that an object takes a context from an address, at any depth: a text under `@context`, or an `@import`."""
        fetched.extend(True for key, value in pairs if key == "@import" or (key == "@context" and _holds_text(value)))

    try:
        if syntax == "json-ld":
            json.loads(text, object_pairs_hook=look)  # called for every object, with all its keys
        if not fetched:
            return rdflib, rdflib.Graph().parse(data=text, format=syntax)
        what, cause = "the JSON-LD takes its @context from an address, and nothing is fetched from a network", None
    except Exception as error:
        what, cause = f"the vocabulary cannot be parsed: {first_line(error)}", error
    where, expected = f"{path}, as {syntax}", "SKOS in Turtle, RDF/XML, N-Triples or JSON-LD, with its context in the file"
    raise DataError(what, where=where, expected=expected, todo="mend the file, or convert it to Turtle") from cause


def _holds_text(context: object) -> bool:
    return isinstance(context, str) or (isinstance(context, list) and any(map(_holds_text, context)))


_PARQUET = b"PAR1"
_OWN = "_of_dataset"
_EXPECTED = "a table (TSV, CSV, Parquet, JSON lines), SKOS (Turtle, RDF/XML, JSON-LD) or a file of ICD titles"


def read_vocabulary(path: Path, language: str | None = None, encoding: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    """Read a vocabulary, of any format: a table of `VOCABULARY_SCHEMA`, each label once, and remarks on what was recognised."""
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
    used = find_used_labels(dataset)
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


def align(table: pl.DataFrame, used: Sequence[str] | pl.Series) -> pl.DataFrame:
    """Rows for labels of the documents that the table writes with other dots or in other case, in the spelling of the documents.

    The column `written` has the spelling of the table.
    """
    key = pl.col("label").str.replace_all(".", "", literal=True).str.to_lowercase().alias("key")
    missing = pl.DataFrame({"label": used}, schema={"label": pl.String}).join(table, on="label", how="anti").with_columns(key)
    keyed = table.with_columns(key).filter(pl.col("key").is_unique()).rename({"label": "written"})
    return missing.join(keyed, on="key", how="inner", maintain_order="left").select(*VOCABULARY_SCHEMA, "written")


def _respell(table: pl.DataFrame, aligned: pl.DataFrame, used: pl.Series) -> pl.DataFrame:
    """The table in the spelling of the documents: labels, and where parents and successors name them, each label once."""
    replaced = aligned.filter(~pl.col("written").is_in(used.implode())).unique("written", keep="first", maintain_order=True)
    kept = table.join(replaced, left_on="label", right_on="written", how="anti", maintain_order="left")
    spelling = dict(replaced.select("written", "label").iter_rows())
    named = (pl.col(name).list.eval(pl.element().replace(spelling)) for name in ("parents", "replaced_by"))
    return pl.concat([aligned.select(*VOCABULARY_SCHEMA), kept]).with_columns(named)


def _complete(table: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The vocabulary, with what the dataset's own table says where it says nothing: empty cells and empty lists are gaps."""
    joined = table.join(own, on="label", how="full", coalesce=True, maintain_order="left_right", suffix=_OWN)
    empty = pl.lit([], dtype=pl.List(pl.String))
    filled: list[pl.Expr] = []
    for name in own.columns[1:]:
        given = pl.col(name) if name not in LISTED_FIELDS else pl.when(pl.col(name).list.len() > 0).then(pl.col(name))
        found = pl.coalesce(given, f"{name}{_OWN}")
        filled.append((found.fill_null(empty) if name in LISTED_FIELDS else found).alias(name))
    return joined.select("label", *filled, pl.col("replaced_by").fill_null(empty)).with_columns(pl.col("deprecated").fill_null(False))
