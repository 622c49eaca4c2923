"""Published corpora by name: cards and counts, tables, downloads, and the files of four
publishers, all made up.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from plant_formats import CARDS, plant_register_datasets
from plant_formats.named_corpora import count_corpus, describe_counts, find_split_folders, fits
from round_trips import write_files, write_format

from plant_cli.api import DataError, DataSection, Dataset, UsageError
from plant_cli.data.documents import digest, tidy
from plant_cli.data.evidence import read_evidence

NAMED = {spec.name: spec for spec in plant_register_datasets() if spec.card is not None}
EURLEX = CARDS["eurlex-4k"]


def load(name: str, path: Path, **options: Any) -> Dataset:
    dataset = NAMED[name].load(DataSection(path=str(path)), NAMED[name].options(**options))
    assert isinstance(dataset, Dataset)
    return dataset


def rows(dataset: Dataset, split: str = "train") -> list[tuple[Any, ...]]:
    return dataset.splits[split].select("doc_id", "text", "labels").collect().rows()  # type: ignore[index]


def titles(dataset: Dataset) -> dict[str, str]:
    return dict(dataset.labels.select("label", "title").collect().iter_rows())


def test_each_has_a_card_that_says_where_to_get_it_and_options_that_are_valid() -> None:
    assert len(NAMED) == 17
    for name, spec in NAMED.items():
        assert all(
            (
                spec.card.title,
                spec.card.licence,
                spec.card.citation,
                spec.card.source,
                spec.card.files,
            )
        ), name
        assert name == "mimic3-rare50" or spec.options()
        assert ("PhysioNet" in spec.card.licence) == name.startswith("mimic")
    assert len({spec: spec.name for spec in NAMED.values()}) == len(
        NAMED
    )  # the conformance checks keep what they loaded by spec


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"mimic3-rare50"}))
def test_tables_are_read_with_the_card_of_their_name(name: str, tmp_path: Path) -> None:
    for split in ("train", "test"):
        pl.DataFrame({"doc_id": [split], "text": ["some text"], "labels": [["x"]]}).write_parquet(
            tmp_path / f"{split}.parquet"
        )
    dataset = load(name, tmp_path)
    assert (rows(dataset), rows(dataset, "test")) == (
        [("train", "some text", ["x"])],
        [("test", "some text", ["x"])],
    )
    assert (dataset.licence, dataset.citation) == (CARDS[name].licence, CARDS[name].citation)
    assert any(
        "the counts are of no known version" in remark for remark in dataset.remarks
    ) == bool(CARDS[name].variants)


def test_options_of_the_distribution_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"text": ["some text"], "labels": [["x"]]}).write_parquet(
        tmp_path / "train.parquet"
    )
    with pytest.raises(UsageError, match="codes cannot be chosen in tables"):
        load("codiesp", tmp_path, codes="D")


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("name", "documents"), [("codiesp", 750), ("reuters-21578", 17_484), ("tibkat", 6_976)]
)
def test_the_corpora_that_are_here_are_known_versions(
    name: str, documents: int, corpora: Path
) -> None:
    dataset = load(name, corpora / name)
    assert (
        sum(frame.select(pl.len()).collect().item() for frame in dataset.splits.values())
        == documents
    )
    assert not any("of no known version" in remark for remark in dataset.remarks)
    assert dataset.labels is not None
    if name == "codiesp":
        spans = dataset.evidence.collect()
        texts = pl.concat(
            frame.select("doc_id", "text", "labels") for frame in dataset.splits.values()
        ).collect()
        joined = spans.rename({"text": "quoted"}).join(texts, on="doc_id", how="left")
        assert joined.height == 16_614
        assert joined["labels"].list.contains(joined["label"]).all()
        assert all(
            text[start:end] == quoted
            for text, start, end, quoted in joined.select(
                "text", "start", "end", "quoted"
            ).iter_rows()
        )


def test_the_two_versions_of_eurlex_4k_are_told_apart() -> None:
    attention = {"train": 15_449, "test": 3_865, "labels": 3_956}
    (said,) = describe_counts(attention, EURLEX)
    assert "AttentionXML" in said
    (other,) = describe_counts(
        {"train": 15_539, "test": 3_809, "labels": 3_900, "label names": 3_993}, EURLEX
    )
    assert "as the XML repository has it" in other
    (unknown,) = describe_counts({**attention, "test": 1}, EURLEX)
    assert unknown.startswith(
        "the counts are of no known version of EURLEX-4K: train 15,449, test 1, labels 3,956; "
        "expected"
    )
    assert describe_counts(attention, replace(EURLEX, variants={})) == []


@pytest.mark.parametrize(
    ("counts", "expected", "right"),
    [
        ({"train": 2, "labels": 3}, {"train": 2, "labels": 3}, True),
        ({"train": 2, "labels": 2, "label names": 3}, {"train": 2, "labels": 3}, True),
        ({"train": 2, "labels": 2}, {"train": 2, "labels": 3}, False),
        ({"train": 2, "test": 1, "labels": 3}, {"train": 2, "labels": 3}, False),
        ({"labels": 3}, {"train": 2, "labels": 3}, False),
        ({"train": 2, "test": 1, "labels": 3}, {"documents": 3, "labels": 3}, True),
        ({"train": 2, "labels": 3}, {"documents": 3, "labels": 3}, False),
    ],
)
def test_all_counts_must_agree(
    counts: dict[str, int], expected: dict[str, int], right: bool
) -> None:
    assert fits(counts, expected) is right


def test_labels_are_counted_as_a_run_keeps_them() -> None:
    frame = pl.LazyFrame(
        {"doc_id": ["1", "2"], "text": ["a", "b"], "labels": [["x ", "", None], ["x", " "]]}
    )
    assert count_corpus(Dataset(splits={"train": frame})) == {"train": 2, "labels": 1}
    labels = pl.LazyFrame({"label": ["x"], "title": [None]})
    assert count_corpus(Dataset(splits={"train": frame}, labels=labels)) == {
        "train": 2,
        "labels": 1,
        "label names": 1,
    }


@pytest.mark.parametrize("form", ["pecos", "attentionxml"])
def test_a_download_may_be_in_any_format(tmp_path: Path, form: str) -> None:
    frame = pl.LazyFrame(
        {"doc_id": ["1", "2"], "text": ["a lamp", "a desk"], "labels": [["x"], ["x", "y"]]}
    )
    write_format(form, Dataset(splits={"train": frame, "test": frame}), tmp_path)
    dataset = load("wiki10-31k", tmp_path)
    assert [labels for *_, labels in rows(dataset)] == (
        [["0"], ["0", "1"]] if form == "pecos" else [["x"], ["x", "y"]]
    )
    assert "Zubiaga" in dataset.citation
    assert dataset.remarks[-1].startswith(
        "the counts are of no known version of WIKI10-31K: train 2, test 2, labels 2"
    )


def test_folders_of_splits_are_found_here_or_one_below(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"data/train/x/1.json": "", "data/dev/2.json": "", "data/other/3.json": ""}
    )
    for path in (tmp_path, tmp_path / "data"):
        folders = find_split_folders(path, "**/*.json")
        assert {split: folder.name for split, folder in folders.items()} == {
            "train": "train",
            "validation": "dev",
        }


@pytest.fixture
def laws(tmp_path: Path) -> Path:
    law: dict[str, Any] = {
        "title": "T",
        "header": "On lamps",
        "recitals": ", Whereas:",
        "concepts": ["1", "2"],
        "attachments": "Annex",
    }
    law["main_body"] = ["Article 1", "Article 2"]
    names = {"train": "3A", "dev": "3B", "test": "3C"}
    files = {
        f"dataset/{split}/{name}.json": json.dumps({**law, "celex_id": name})
        for split, name in names.items()
    }
    return write_files(
        tmp_path,
        files
        | {"dataset/train/bad.json": '{"celex_id": 1,\n"x"', "dataset/train/other.json": "{}"},
    )


def test_header_recitals_and_body_of_laws(laws: Path) -> None:
    dataset = load("eurlex57k", laws)
    assert set(dataset.splits) == {"train", "validation", "test"}
    assert rows(dataset) == [("3A", "On lamps\n, Whereas:\nArticle 1\nArticle 2", ["1", "2"])]
    assert "2 rows cannot be read" in dataset.remarks[0]
    assert "bad.json, line 2" in dataset.remarks[0]
    assert rows(load("eurlex57k", laws, attachments=True), "test")[0][1].endswith(
        "Article 2\nAnnex"
    )


@pytest.mark.parametrize(
    "names",
    [
        '{"1": {"label": "lamp", "alt_labels": ["light"]}}',
        '{"id": "1", "title": "lamp", "alt_titles": ["light"]}\n{"id": "2", "title": "x"}',
    ],
)
def test_names_of_concepts(laws: Path, names: str) -> None:
    write_files(laws, {"eurovoc_concepts.jsonl": names})
    dataset = load("eurlex57k", laws)
    assert dataset.labels.collect().row(0) == ("1", "lamp", ["light"])
    assert dataset.files[-1] == str(laws / "eurovoc_concepts.jsonl")


@pytest.mark.parametrize(
    "names",
    [
        '{"title": "x"}\n{"id": "2"}',
        "[1]",
        '{"id": "1"',
        '[{"id": "1", "title": ["x"]}]',
        '{"1": {"alt_labels": 3}}',
    ],
)
def test_names_that_cannot_be_read_are_an_error(laws: Path, names: str) -> None:
    write_files(laws, {"eurovoc_concepts.json": names})
    with pytest.raises(DataError, match="names of EuroVoc's concepts cannot be read") as caught:
        load("eurlex57k", laws)
    assert caught.value.where.endswith("eurovoc_concepts.json")


CASE = "Paciente con fiebre y tos.\r\nSe hizo una radiografía de tórax.\n"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    files = {f"{split}/text_files/{split}-1.txt": CASE for split in ("train", "dev", "test")}
    for split in ("train", "dev"):
        files[f"{split}/{split}D.tsv"] = f"{split}-1\tr50.9\n{split}-1\tr05\nlost\n"
        files[f"{split}/{split}P.tsv"] = f"{split}-1\tbw03\n"
        spans = [
            "DIAGNOSTICO\tr50.9\tfiebre\t13 19",
            "PROCEDIMIENTO\tbw03\tradiografía tórax\t40 51;55 60",
            "DIAGNOSTICO\tr05\ttos\tx y",
        ]
        files[f"{split}/{split}X.tsv"] = "".join(f"{split}-1\t{span}\n" for span in spans)
    return write_files(tmp_path, files)


def test_codes_texts_and_spans_of_codiesp(cases: Path) -> None:
    dataset = load("codiesp", cases)
    assert rows(dataset) == [("train-1", CASE, ["r50.9", "r05", "bw03"])]
    assert set(dataset.splits) == {"train", "validation"}
    assert any("texts and no gold codes" in remark for remark in dataset.remarks)
    assert any("4 rows cannot be read" in remark for remark in dataset.remarks)
    spans = dataset.evidence.filter(pl.col("doc_id") == "train-1").collect()
    assert spans["text"].to_list() == ["fiebre", "radiografía", "tórax"]
    kept, findings = read_evidence(
        dataset, {name: tidy(digest(frame.collect())) for name, frame in dataset.splits.items()}
    )
    assert (kept.height, findings) == (6, [])
    diagnoses = load("codiesp", cases, codes="D")
    assert rows(diagnoses)[0][2] == ["r50.9", "r05"]
    assert set(diagnoses.evidence.collect()["label"]) == {"r50.9"}


def story(
    number: int, split: str, topics: str, text: str, labels: str = "<D>cocoa</D><D>sugar</D>"
) -> str:
    head = (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="9" '
        f'NEWID="{number}">'
    )
    return f"{head}\n<TOPICS>{labels}</TOPICS>\n<PLACES><D>brazil</D></PLACES>\n<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"


STORIES = [
    story(
        1,
        "TRAIN",
        "YES",
        "<TITLE>COCOA &amp; SUGAR</TITLE><DATELINE>BAHIA, </DATELINE><BODY>Showers "
        "continued.\n&#3;</BODY>",
    ),
    story(2, "TEST", "YES", "<TITLE>GOLD</TITLE><BODY>Up &lt;XYZ>.</BODY>", labels=""),
    story(3, "TRAIN", "NO", "<BODY>No topics.</BODY>", labels=""),
    story(4, "NOT-USED", "YES", "<BODY>Unused.</BODY>"),
    story(5, "TRAIN", "BYPASS", "<BODY>Bypassed.</BODY>"),
    story(6, "TRAIN", "YES", "plain text of a brief story"),
    story(7, "TRAIN", "YES", ""),
]


def test_stories_of_reuters(tmp_path: Path) -> None:
    text = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(STORIES)
    write_files(tmp_path, {"reut2-000.sgm": text})
    dataset = load("reuters-21578", tmp_path)
    brief = ("6", "plain text of a brief story", ["cocoa", "sugar"])
    assert rows(dataset) == [
        ("1", "COCOA & SUGAR\n\nShowers continued.", ["cocoa", "sugar"]),
        brief,
    ]
    assert rows(dataset, "test") == [("2", "GOLD\n\nUp <XYZ>.", [])]
    assert "1 stories have neither title nor body" in dataset.remarks[0]
    everything = load("reuters-21578", tmp_path, split="modlewis", categories="all")
    assert [doc_id for doc_id, *_ in rows(everything)] == ["1", "3", "6"]
    assert rows(everything)[0][2] == ["topic:cocoa", "topic:sugar", "place:brazil"]
    write_files(tmp_path, {"reut2-000.sgm": text + STORIES[0][:200]})
    assert any(
        "a story is not closed" in remark for remark in load("reuters-21578", tmp_path).remarks
    )


def record(number: int, subjects: object, abstract: object = "An abstract.") -> str:
    names = [{"@id": "gnd:1", "sameAs": "Öl"}, {"@id": "gnd:2", "sameAs": ["Gas", "Erdgas"]}]
    page = f"https://www.tib.eu/de/suchen/id/TIBKAT%3A{number}"
    one = {
        "@id": page,
        "title": f"Title {number}",
        "abstract": abstract,
        "dcterms:subject": subjects,
    }
    return json.dumps(
        {"@graph": [*names, one], "@context": {"title": "http://purl.org/dc/elements/1.1/title"}}
    )


def test_records_of_tibkat(tmp_path: Path) -> None:
    records = {
        "train/Book/de/3A1": record(1, [{"@id": "gnd:1"}, {"@id": "gnd:2"}], ["Eins.", "One."]),
        "train/Book/en/3A2": record(2, {"@id": "gnd:1"}),
        "train/Book/en/3A3": '{"@graph": []}',
        "dev/Thesis/en/3A4": record(4, None, None),
        "test/Report/de/3A5": record(5, {"@id": "gnd:2"}),
    }
    write_files(tmp_path, {f"data/{name}.jsonld": content for name, content in records.items()})
    dataset = load("tibkat", tmp_path)
    assert rows(dataset) == [
        ("Book-de-3A1", "Title 1\nEins.\nOne.", ["gnd:1", "gnd:2"]),
        ("Book-en-3A2", "Title 2\nAn abstract.", ["gnd:1"]),
    ]
    assert rows(dataset, "validation") == [("Thesis-en-3A4", "Title 4", [])]
    assert titles(dataset) == {"gnd:1": "Öl", "gnd:2": "Gas"}
    assert "3A3.jsonld, line 1: not a record" in dataset.remarks[0]
    german = load("tibkat", tmp_path, language="de")
    assert {name: frame.collect().height for name, frame in german.splits.items()} == {
        "train": 1,
        "test": 1,
    }
