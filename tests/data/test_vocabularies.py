"""Vocabularies: tables, ICD titles and SKOS, and what a corpus takes of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import polars as pl
import pytest
import rdflib

from plant_cli.api import DataError, DataSection, Dataset, SilentReporter
from plant_cli.data.documents import find_used_labels
from plant_cli.data.loading import load_dataset
from plant_cli.data.prepare import prepare
from plant_cli.data.store import open_corpus
from plant_cli.data.vocabularies import (
    SYSTEMS,
    VOCABULARY_SCHEMA,
    System,
    add_dot,
    align,
    apply_vocabulary,
    find_classification,
    find_rdf_syntax,
    read_icd_titles,
    read_skos,
    read_vocabulary,
    read_vocabulary_table,
    tidy_labels,
)
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context

HEADING = "label,title,description,alternatives,parents,deprecated,replaced_by\n"

TABLE = HEADING + "E11,Diabetes,High sugar,NIDDM|T2D,E1,no,\nI10,Pressure,,,,yes,I11\n"


def dataset() -> Dataset:
    train = pl.LazyFrame({"doc_id": ["1", "2"], "text": ["sugar in blood", "high pressure"], "labels": [["E11"], ["I10", "Z9"]]})
    return Dataset(splits={"train": train}, labels=pl.LazyFrame({"label": ["Z9", "E11"], "title": ["Own title", "Overruled"]}))


def section(tmp_path: Path, text: str = TABLE) -> DataSection:
    (tmp_path / "v.csv").write_text(text)
    return DataSection(vocabulary=str(tmp_path / "v.csv"))


def test_the_vocabulary_rules_and_the_own_table_fills_its_gaps(tmp_path: Path) -> None:
    labels, remarks = apply_vocabulary(dataset(), section(tmp_path))
    assert labels.select("label", "title").collect().rows() == [("E11", "Diabetes"), ("I10", "Pressure"), ("Z9", "Own title")]
    assert any("2 of 3 labels of the documents are in" in remark for remark in remarks)
    assert "1 labels of the documents are deprecated in the vocabulary, such as 'I10', replaced by I11" in remarks


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_the_encoding_of_the_documents_is_not_forced_on_the_vocabulary(tmp_path: Path, encoding: str) -> None:
    """A catalogue in windows-1252 beside a thesaurus in UTF-8."""
    (tmp_path / "v.csv").write_text("label,title\nE11,Küchenmöbel\n", encoding=encoding)
    table, _ = read_vocabulary(tmp_path / "v.csv", encoding="cp1252")
    assert table.select("label", "title").rows() == [("E11", "Küchenmöbel")]


def test_labels_that_are_titles_are_told(tmp_path: Path) -> None:
    _, remarks = apply_vocabulary(dataset(), section(tmp_path, "label,title\nu:1,E11\nu:2,I10\n"))
    assert "2 labels of the documents are titles in the vocabulary, not labels: 'E11' is 'u:1' there" in remarks


def test_all_that_the_own_table_knows_fills_gaps_not_titles_alone(tmp_path: Path) -> None:
    own = pl.LazyFrame(
        {
            "label": ["E11", "I10 ", "Z9"],
            "title": ["Overruled", "Overruled", "Own title"],
            "description": ["Overruled", "Own words", "Seen before"],
            "alternatives": [["overruled"], ["hypertension"], ["again"]],
            "parents": [["overruled"], ["I1"], ["Z"]],
        }
    )
    labels, _ = apply_vocabulary(Dataset(splits=dataset().splits, labels=own), section(tmp_path))
    assert labels.select("label", "title", "description", "alternatives", "parents").collect().rows() == [
        ("E11", "Diabetes", "High sugar", ["NIDDM", "T2D"], ["E1"]),
        ("I10", "Pressure", "Own words", ["hypertension"], ["I1"]),
        ("Z9", "Own title", "Seen before", ["again"], ["Z"]),
    ]


def test_a_dataset_without_labels_of_its_own_has_those_of_the_vocabulary(tmp_path: Path) -> None:
    labels, _ = apply_vocabulary(Dataset(splits=dataset().splits), section(tmp_path))
    assert labels.select("label", "title", "parents").collect().rows() == [("E11", "Diabetes", ["E1"]), ("I10", "Pressure", [])]


def test_a_run_keeps_names_descriptions_and_parents(tmp_path: Path) -> None:
    labels, _ = apply_vocabulary(dataset(), section(tmp_path))
    given = Dataset(splits=dataset().splits, labels=labels)
    prepare(given, DataSection(), tmp_path / "corpus", SilentReporter())
    index = open_corpus(tmp_path / "corpus", lambda: given).labels
    assert index.ids == ["E11", "I10", "Z9"]
    assert index.titles == ["Diabetes", "Pressure", "Own title"]
    assert index.descriptions == ["High sugar", None, None]
    assert index.alternatives == [["NIDDM", "T2D"], [], []]
    assert index.parents == [["E1"], [], []]


def test_labels_written_without_dots_or_in_lower_case_are_found() -> None:
    table = tidy_labels(pl.DataFrame({"label": ["E11.9", "A.B", "AB"], "title": ["x", "y", "z"]}))
    found = align(table, ["e119", "E11.9", "ab"])
    assert found.select("label", "title").rows() == [("e119", "x")]  # "ab" may be two labels


def test_a_label_in_two_spellings_is_one_label(tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1", "2", "3"], "text": ["a", "b", "c"], "labels": [["E11"], ["i109", "I10.8"], ["i108"]]})
    text = HEADING + "e11,Diabetes,,,,,\nE11.9,Type 2,,,e11,,\nI10.9,Pressure,,,,yes,e11\nI10.8,Low,,,,,\nZ9,New,,,I10.9,,\n"
    table, remarks = apply_vocabulary(Dataset(splits={"train": train}), section(tmp_path, text))
    assert table.select("label", "title", "parents", "replaced_by").collect().rows() == [
        ("E11", "Diabetes", [], []),
        ("i108", "Low", [], []),
        ("i109", "Pressure", [], ["E11"]),
        ("E11.9", "Type 2", ["E11"], []),
        ("I10.8", "Low", [], []),  # the documents write this one, too
        ("Z9", "New", ["i109"], []),
    ]
    assert "3 labels of the documents were found by leaving aside dots and case, such as 'E11'" in remarks


def test_no_zero_shot_label_is_a_label_of_train_in_another_spelling(tmp_path: Path) -> None:
    given = section(tmp_path, HEADING + "E1.1,Diabetes,,,,,\nI1.0,Pressure,,,,,\nJ20,Bronchitis,,,,,\n")
    labels, _ = apply_vocabulary(dataset(), given)
    prepared = prepare(Dataset(splits=dataset().splits, labels=labels), DataSection(zero_shot=True), tmp_path / "c", SilentReporter())
    assert list(prepared.labels.ids) == ["E11", "I10", "J20", "Z9"]


def test_a_new_edition_of_the_vocabulary_moves_no_label(tmp_path: Path) -> None:
    before, _ = apply_vocabulary(dataset(), section(tmp_path))
    lines = TABLE.splitlines()
    after, _ = apply_vocabulary(
        dataset(), section(tmp_path, "\n".join([lines[0], "A00,New,,,,,", lines[2], lines[1].replace("Diabetes", "Type 2")]))
    )
    for place, labels in (("a", before), ("b", after)):
        prepare(Dataset(splits=dataset().splits, labels=labels), DataSection(), tmp_path / place, SilentReporter())
    first, second = (open_corpus(tmp_path / place, dataset).labels for place in "ab")
    assert (first.ids, first.hash) == (second.ids, second.hash)
    assert second.titles[0] == "Type 2"


def test_load_dataset_uses_it_and_counts_it_among_the_files(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["a"], "labels": [["E11"]], "split": ["train"]}).write_parquet(tmp_path / "x.parquet")
    data = section(tmp_path).model_copy(update={"path": str(tmp_path / "x.parquet")})
    reporter = SilentReporter()
    loaded = load_dataset(make_context(components=installed(), reporter=reporter), data)
    assert data.vocabulary in loaded.files
    assert "a table of 2 labels" in reporter.notes[0]


def test_used_labels_are_those_that_tidying_keeps() -> None:
    assert find_used_labels(dataset()).to_list() == ["E11", "I10", "Z9"]
    train = dataset().splits["train"].with_columns(labels=pl.lit([" E11 ", "", " "]))
    assert find_used_labels(Dataset(splits={"train": train})).to_list() == ["E11"]


def read(tmp_path: Path, text: str, language: str | None = None) -> tuple[pl.DataFrame, list[str]]:
    (tmp_path / "v.csv").write_text(text, encoding="utf-8")
    return read_vocabulary_table(tmp_path / "v.csv", text, language, None)


def test_bad_lines_of_annifs_tsv_are_counted(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "<http://a/1>\tOil\n" * 30 + "lost\n")
    assert table.height == 30
    assert "1 lines are not <uri>, tab, label, and are left out: 31" in remarks


def test_annifs_tsv(tmp_path: Path) -> None:
    table, remarks = read(tmp_path, "<http://a/1>\tOil\t12\n<http://a/2>\tGas\n")
    assert table.select("label", "title").rows() == [("http://a/1", "Oil"), ("http://a/2", "Gas")]
    assert remarks == ["Annif's TSV vocabulary of 2 labels"]


def test_annifs_csv_has_titles_in_languages(tmp_path: Path) -> None:
    text = "uri,label_de,label_en,notation\n<u1>,Öl,Oil,1\nu2,Gas,,2\n"
    assert read(tmp_path, text)[0].select("label", "title").rows() == [("u1", "Oil"), ("u2", None)]
    assert read(tmp_path, text, "de")[0]["title"].to_list() == ["Öl", "Gas"]


def test_lists_in_cells(tmp_path: Path) -> None:
    text = "code,name,synonyms,parent,deprecated,replaced_by\nE11,Diabetes,NIDDM|T2D,E1,no,\n"
    text += """E12,Old,"[""x; y""]","['E1' 'E2']",TRUE,E11\n"""
    assert read(tmp_path, text)[0].rows() == [
        ("E11", "Diabetes", None, ["NIDDM", "T2D"], ["E1"], False, []),
        ("E12", "Old", None, ["x; y"], ["E1", "E2"], True, ["E11"]),
    ]


def test_tidying_keeps_the_schema() -> None:
    assert tidy_labels(pl.DataFrame({"label": [" a "], "extra": [1]})).schema == pl.Schema(VOCABULARY_SCHEMA)


def test_only_a_pair_of_angle_brackets_is_taken_off() -> None:
    found = tidy_labels(pl.DataFrame({"label": ["<18", ">65", "<http://a/b>", "18"]}))
    assert found["label"].to_list() == ["<18", ">65", "http://a/b", "18"]


DIAGNOSES9 = {"4019": "401.9", "401": "401", "E8859": "E885.9", "E885": "E885", "V3001": "V30.01", "486": "486"}

PROCEDURES9 = {"0066": "00.66", "66": "66", "9904": "99.04"}

DIAGNOSES10 = {"I10": "I10", "E119": "E11.9", "S52501A": "S52.501A"}

CODES: dict[System, dict[str, str]] = {
    "ICD-9-CM diagnoses": DIAGNOSES9,
    "ICD-9-CM procedures": PROCEDURES9,
    "ICD-10-CM": DIAGNOSES10,
    "ICD-10-PCS": {"0DTJ4ZZ": "0DTJ4ZZ", "0DT": "0DT"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_dots(system: System) -> None:
    assert {code: add_dot(code, system) for code in CODES[system]} == CODES[system]


ORDER = "\n".join(
    f"{number:05d} {code:<7} {flag} {short:<60} {long}"
    for number, code, flag, short, long in [
        (1, "A00", 0, "Cholera", "Cholera"),
        (2, "A000", 1, "Cholera due to Vibrio cholerae 01, biovar cholerae", "Cholera due to Vibrio cholerae 01, biovar cholerae"),
        (3, "S52501A", 1, "Unsp fracture of the lower end of right radius, init", "Unspecified fracture of the lower end of right radius"),
    ]
)


def test_the_order_file_has_categories_and_short_titles() -> None:
    table, remarks = read_icd_titles(ORDER)  # type: ignore[misc]
    assert remarks == ["3 titles of ICD-10-CM (order file)"]
    assert table.select("label", "parents").rows() == [("A00", []), ("A00.0", ["A00"]), ("S52.501A", [])]
    assert table["alternatives"].to_list() == [[], [], ["Unsp fracture of the lower end of right radius, init"]]


@pytest.mark.parametrize(
    ("text", "labels", "system"),
    [
        ("A000    Cholera due to Vibrio\nA0100   Typhoid fever\n", ["A00.0", "A01.00"], "ICD-10-CM"),
        ("0016070 Bypass Cerebral Ventricle\n0DTJ4ZZ Resection of Appendix\n", ["0016070", "0DTJ4ZZ"], "ICD-10-PCS"),
        ("0010  Cholera d/t vib cholerae\nE8859 Fall NOS\nV3001 Single liveborn\n", ["001.0", "E885.9", "V30.01"], "ICD-9-CM diagnoses"),
        ("0001 Therapeutic ultrasound\n0066 PTCA\n", ["00.01", "00.66"], "ICD-9-CM procedures"),
    ],
)
def test_lists_of_four_classifications(text: str, labels: list[str], system: str) -> None:
    table, remarks = read_icd_titles(text)  # type: ignore[misc]
    assert table["label"].to_list() == labels
    assert system in remarks[0]


def test_lines_that_fit_no_layout_are_counted() -> None:
    _, remarks = read_icd_titles("A000    Cholera\n" * 100 + "* end\n")  # type: ignore[misc]
    assert remarks[1] == "1 lines are not a code and a title, and are left out: 101"


@pytest.mark.parametrize("text", ["", "label,title\nA,b\n", "A000\n", "some prose\nand more\n", "HELLO world\nTHE end\n"])
def test_other_files_are_none(text: str) -> None:
    assert read_icd_titles(text) is None


def test_codes_of_no_classification() -> None:
    assert find_classification(["ABC-1"]) is None


@pytest.mark.parametrize("rows", ["{0}\tT {0}", "{0}\tT {0}\t100"])
def test_a_table_with_a_heading_is_no_list_of_codes_whatever_its_ids(rows: str) -> None:
    numbered = "\n".join(rows.format(number) for number in range(1000, 1060))
    assert read_icd_titles("label\ttitle\tparents\n" + numbered) is None
    assert (read_icd_titles(numbered) is None) == rows.endswith("100")  # a third column is no part of a title


SECTION = DataSection(analyser="none")


def titled(labels: list[str], titles: dict[str, str | None], folder: Path) -> SilentReporter:
    """What is said of a corpus with these labels and this table of titles."""
    rows = [f"document {i}" for i in range(len(labels))]
    train = pl.LazyFrame({"doc_id": rows, "text": rows, "labels": [[label] for label in labels]})
    table = pl.LazyFrame({"label": list(titles), "title": list(titles.values())}, schema={"label": pl.String, "title": pl.String})
    reporter = SilentReporter()
    other = pl.LazyFrame({"doc_id": ["v"], "text": ["another document"], "labels": [labels[:1]]})
    prepare(Dataset(splits={"train": train, "validation": other}, labels=table), SECTION, folder, reporter)
    return reporter


def test_titles_that_match_no_label(tmp_path: Path) -> None:
    reporter = titled(["004.1", "004.2"], {"9": "Other", "4.1": "Computing", "4.2": "Programs"}, tmp_path)
    assert reporter.warnings == [
        "no label of train has a title in the table of titles (corpus '004.1', table '4.1'): "
        "are labels written alike in both? (--titles names another table)"
    ]


def test_titles_for_fewer_than_half_of_the_labels(tmp_path: Path) -> None:
    reporter = titled(["a", "b", "c"], {"a": "Alpha", "z": "Zeta", "b": None}, tmp_path)
    assert "only 1 of the 3 labels of train have a title in the table of titles (corpus 'b', table 'z')" in reporter.warnings[0]
    assert "(corpus 'b'):" in titled(["a", "b", "c"], {"a": "Alpha"}, tmp_path).warnings[0]


@pytest.mark.parametrize("titles", [{"a": "Alpha", "z": "Zeta"}, {"x": None}, {}])
def test_enough_titles_or_none_at_all_are_fine(tmp_path: Path, titles: dict[str, str | None]) -> None:
    reporter = titled(["a", "b"], titles, tmp_path)
    assert (reporter.warnings, reporter.notes) == ([], [])


def test_of_several_titles_the_first_counts(dataset: Dataset, tmp_path: Path) -> None:
    reporter = SilentReporter()
    prepare(dataset, SECTION, tmp_path, reporter)
    assert reporter.notes == ["1 labels have several titles in the table of titles, such as 'A9': the first counts"]


def test_titles_that_are_objects_are_refused(tmp_path: Path) -> None:
    train = pl.LazyFrame({"doc_id": ["1"], "text": ["a"], "labels": [["x"]]})
    table = pl.LazyFrame({"label": ["x"], "title": [{"en": 1}]})
    with pytest.raises(DataError, match="the column 'title' of the table of titles holds Struct"):
        prepare(Dataset(splits={"train": train, "validation": train.clear()}, labels=table), SECTION, tmp_path, SilentReporter())


TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
<http://x/1> a skos:Concept ; skos:prefLabel "Oil"@en, "\u00d6l"@de ; skos:altLabel "Petroleum"@en, "Erd\u00f6l"@de ;
  skos:definition "What burns."@en ; skos:broader <http://x/2> .
<http://x/2> a skos:Concept ; skos:prefLabel "Energie"@de ; owl:deprecated true ; dct:isReplacedBy <http://x/1> .
"""

PATH = Path("v.ttl")


@pytest.mark.parametrize("syntax", ["turtle", "xml", "json-ld", "nt"])
def test_every_syntax_is_known_by_content_and_says_the_same(syntax: str) -> None:
    text = rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
    assert find_rdf_syntax(text) == syntax
    table, remarks = read_skos(text, syntax, None, PATH)
    assert table.rows() == [
        ("http://x/1", "Oil", "What burns.", ["Petroleum"], ["http://x/2"], False, []),
        ("http://x/2", None, None, [], [], True, ["http://x/1"]),
    ]
    assert "1 concepts have no title in 'en'" in remarks[1]


def test_another_language() -> None:
    table, _ = read_skos(TURTLE, "turtle", "de", PATH)
    assert table.select("title", "alternatives").rows() == [("\u00d6l", ["Erd\u00f6l"]), ("Energie", [])]


@pytest.mark.parametrize("language", [None, "en", "en-GB", "en-gb"])
def test_titles_with_a_region_alone(language: str | None) -> None:
    table, remarks = read_skos(TURTLE.replace("@en", "@en-GB").replace("@de", "@de-AT"), "turtle", language, PATH)
    assert table["title"].to_list() == ["Oil", None]
    assert "1 concepts have no title" in remarks[1]


@pytest.mark.parametrize("node", ['[ <http://x/value> "text"@en ]', "<http://x/note>"])
def test_notes_and_names_that_are_nodes_are_left_out(node: str) -> None:
    more = f"<http://x/1> skos:definition {node} ; skos:altLabel {node} . <http://x/2> skos:prefLabel {node} ."
    table, _ = read_skos(TURTLE + more, "turtle", None, PATH)
    assert table.select("title", "description", "alternatives").rows() == [("Oil", "What burns.", ["Petroleum"]), (None, None, [])]


CONCEPT = '"@id": "http://x/1", "http://www.w3.org/2004/02/skos/core#prefLabel": "Oil"'


@pytest.fixture
def address() -> Iterator[tuple[str, list[str]]]:
    """A server of contexts on this machine, and what was asked of it."""
    asked: list[str] = []

    class Contexts(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/ld+json")
            self.end_headers()
            self.wfile.write(b'{"@context": {}}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Contexts) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/c", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "document",
    [
        '{"@context": "ADDRESS", %s}',
        '{"@context": ["ADDRESS"], %s}',
        '{"@context": [[{"a": "http://x/[a]"}, ["ADDRESS"]]], %s}',
        '{"@context": {"@import": "ADDRESS"}, %s}',
        '{"@context": {"@context": "ADDRESS"}, %s}',
        '{"@context": {}, "@context": "ADDRESS", %s}',
        '[[{"@graph": [{"@context": "ADDRESS", %s}]}]]',
        '{"@context": {"of": {"@id": "http://x/of", "@context": "ADDRESS"}}, "of": {%s}}',
        '{"@graph": [{"\\u0040context": "\\u0068ADDRESS", %s}]}',
    ],
)
def test_no_context_is_asked_for(address: tuple[str, list[str]], document: str) -> None:
    place, asked = address
    text = (document % CONCEPT).replace("\\u0068ADDRESS", "\\u0068" + place[1:]).replace("ADDRESS", place)
    with pytest.raises(DataError, match="nothing is fetched"):
        read_skos(text, "json-ld", None, PATH)
    assert asked == []


def test_a_context_within_the_file_is_read() -> None:
    context = (
        '{"@vocab": "http://www.w3.org/2004/02/skos/core#", "id": "@id", "of": {"@id": "http://x/of", "@context": {"b": "http://x/b"}}}'
    )
    table, _ = read_skos(f'{{"@context": [null, {context}], "id": "http://x/1", "prefLabel": "Oil"}}', "json-ld", None, PATH)
    assert table.select("label", "title").rows() == [("http://x/1", "Oil")]


@pytest.mark.parametrize("text", ["", "label,title\n", '{"text": "a"}', "<html><body/></html>", "a\tb\n"])
def test_what_is_no_rdf(text: str) -> None:
    assert find_rdf_syntax(text) is None


def test_many_comments_before_another_root_take_no_time() -> None:
    begin = time.process_time()
    assert find_rdf_syntax("<!-- a -->\n" * 5000 + "<html/>") is None
    assert find_rdf_syntax("<?xml version='1.0'?>\n" + "<!-- a -->\n" * 50 + "<rdf:RDF/>") == "xml"
    assert time.process_time() - begin < 2  # it doubled with each comment
