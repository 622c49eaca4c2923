"""Where the texts to label come from: tables, text files, folders of them, standard input; in
any encoding.
"""

from __future__ import annotations

import gzip
import io
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docx
import pypdf
import pytest

from plant_cli.api import DataError, DataSection, SilentReporter
from plant_cli.data.loading import guess_text
from plant_cli.data.shares import Shard
from plant_cli.registry import installed
from plant_cli.scoring import new_texts
from plant_cli.scoring.new_texts import TextReader
from plant_cli.testing.contexts import make_context

NOTE = "Zufuhr von Wärme"


class Listener(SilentReporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def warn(self, message: str) -> None:
        self.said.append(message)

    note = warn


def read(
    path: Path | str,
    *,
    data: DataSection | None = None,
    reporter: Listener | None = None,
    **options: Any,
) -> dict[str, str]:
    reader = TextReader(
        data=data or DataSection(), reporter=reporter or SilentReporter(), **options
    )
    return dict(zip(*reader.read(str(path)), strict=True))


def test_a_text_file_is_one_document_and_a_folder_as_many_as_it_holds(tmp_path: Path) -> None:
    for name, text in {"b.txt": "two", "a.txt": NOTE, "c.key": "no text"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert read(tmp_path / "a.txt") == {"a": NOTE}
    assert list(read(tmp_path).items()) == [("a", NOTE), ("b", "two")]
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"no \.txt files"):
        read(tmp_path / "none")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.txt")


def test_capital_and_packed_texts_are_read_and_what_is_passed_over_is_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.txt", "B.TXT", "a.Txt", "sub/c.txt", "note.md", ".hidden.txt"):
        (tmp_path / name).write_text(NOTE, encoding="utf-8")
    (tmp_path / "d [1].txt.gz").write_bytes(gzip.compress(NOTE.encode()))
    listener = Listener()
    assert set(read(tmp_path, reporter=listener)) == {"a.txt", "B", "a.Txt", "d [1]"}
    assert set(read(tmp_path, reporter=listener).values()) == {NOTE}
    assert listener.said[0] == (
        f"2 files of {tmp_path} are passed over: note.md, sub/c.txt (texts are .txt, .pdf, .docx "
        "and .html files in the folder itself; "
        "--recursive reads those below, too)"
    )
    (tmp_path / "sub/B.TXT").write_text(NOTE)
    assert set(read(tmp_path, recursive=True)) == {
        "a.txt",
        "B.TXT",
        "a.Txt",
        "d [1]",
        "c",
        "sub/B.TXT",
    }  # each with an id of its own


def test_office_files_and_web_pages_are_read_and_one_that_cannot_be_stops_no_other(
    tmp_path: Path,
) -> None:
    page = (
        "<html><style>p {}</style><script>x()</script><h1>Lung &amp; heart</h1><p>A "
        "<b>very</b>\n bad   cough</p></html>"
    )
    (tmp_path / "a.html").write_text(page)
    document = docx.Document()
    document.add_paragraph("Fever")
    document.add_paragraph("at night")
    document.save(tmp_path / "b.docx")
    for name, password in (("c.pdf", None), ("d.pdf", "secret")):
        writer = pypdf.PdfWriter()
        writer.add_blank_page(100, 100)
        if password:
            writer.encrypt(password, algorithm="RC4-128")
        writer.write(tmp_path / name)
    (tmp_path / "e.pdf").write_bytes(b"%PDF-1.4 cut off")
    (tmp_path / "f.txt").write_bytes(b"\x7fELF\x00")
    listener = Listener()
    texts = read(tmp_path, reporter=listener)
    assert texts == {
        "a": "Lung & heart\nA very bad cough",
        "b": "Fever\nat night",
        "c": "",
        "d": "",
        "e": "",
        "f": "",
    }
    said = [one.partition(" is not read: ")[2] for one in listener.said[:4]]
    assert said[:2] == ["the PDF holds no text, perhaps pictures alone", "the PDF is encrypted"]
    assert said[2].startswith("the PDF cannot be read: ")
    assert said[3] == "this is a program"
    with pytest.raises(DataError, match="the PDF is encrypted"):
        read(tmp_path / "d.pdf")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_standard_input_is_one_text(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not Unicode it is taken to be in the encoding of the run's corpus."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(NOTE.encode(encoding))))
    assert read("-", data=DataSection(encoding="cp1252")) == {"text": NOTE}


@pytest.mark.parametrize(
    ("given", "texts", "said"),
    [
        (
            '{"doc_id": "a", "text": "one"}\n{"doc_id": "b", "text": "two"}\n',
            {"a": "one", "b": "two"},
            "as JSON lines",
        ),
        ('[{"doc_id": "a", "text": "one"}]', {"a": "one"}, "a table of 1 texts"),
        ("doc_id\ttext\n007\tone\n", {"007": "one"}, "a table of 1 texts"),
        (
            "One line.\n\nAnother, with a text.\n",
            {"text": "One line.\n\nAnother, with a text.\n"},
            "one text of 2 lines",
        ),
    ],
)
def test_a_table_on_standard_input_is_many_texts(
    given: str, texts: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
    reporter = Listener()
    assert read("-", reporter=reporter) == texts
    assert said in reporter.said[0]
    monkeypatch.setattr(
        sys,
        "stdin",
        SimpleNamespace(buffer=io.BytesIO(b'{"doc_id": "a", "words": "one"}\n{"doc_id"')),
    )
    with pytest.raises(DataError) as caught:
        read("-")
    assert caught.value.where.startswith("standard input")  # and no name of a temporary file


def test_each_line_is_a_text_if_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\n\ntwo")
    assert read(tmp_path / "a.txt", lines=True) == {"1": "one", "3": "two"}
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "one"}\r\n\ntwo'))
    )
    assert read("-", lines=True) == {"1": '{"text": "one"}', "3": "two"}


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        (b'{"a": "x", "b": 7, "id": 3}', {"3": "x\n7"}, None),
        (b'{"a": null, "b": " x ", "id": null}', {"2": "x"}, None),
        (b'{"a": ["x"], "b": ""}', {"2": ""}, "its text is a list or an object"),
        (b'{"a": "x"}', {"2": ""}, "there is no 'b'; it has: a"),
        (b"[1]", {"2": ""}, "it is no JSON object"),
        (b'{"a": "\xff"}', {"2": ""}, "it is not JSON in UTF-8"),
    ],
)
def test_each_of_many_json_lines_has_a_text(
    line: bytes, text: Any, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.BytesIO(b'{"a": "", "b": "one", "id": "0"}\n' + line)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    reporter = Listener()
    assert read("-", reporter=reporter, text_column="a,b", id_column="id") == {"0": "one", **text}
    assert reporter.said[1:2] == (
        [f"standard input, line 2 cannot be read: {said}"] if said else []
    )


def test_blocks_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name)
    (tmp_path / "t.csv").write_text("text\na\nb\nc\n")
    for path, ids in ((tmp_path, ["a", "b", "c"]), (tmp_path / "t.csv", ["1", "2", "3"])):
        new = TextReader(data=DataSection(), reporter=SilentReporter()).open(str(path), 2)
        assert new.total == 3
        assert list(new.blocks) == [(ids[:2], ["a", "b"]), (ids[2:], ["c"])]


def test_a_text_in_an_unknown_encoding_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(NOTE.encode("cp1252"))
    with pytest.raises(DataError, match="the text is not UTF-8") as caught:
        read(tmp_path / "a.txt")
    assert "line 1, column 13" in caught.value.where
    assert read(tmp_path / "a.txt", encoding="cp1252") == {"a": NOTE}


def test_a_table_of_another_encoding_than_the_runs_corpus(tmp_path: Path) -> None:
    data, listener = DataSection(encoding="cp1252"), Listener()
    for encoding in ("utf-8", "utf-8-sig", "cp1252"):
        (tmp_path / f"{encoding}.csv").write_text(f"doc_id,text\n7,{NOTE}\n", encoding=encoding)
        assert read(tmp_path / f"{encoding}.csv", data=data, reporter=listener) == {"7": NOTE}
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "gone.csv", data=data, reporter=listener)
    assert [said.partition(":")[0] for said in listener.said] == [
        f"{tmp_path / 'cp1252.csv'} is not UTF-8"
    ]


def test_the_column_of_texts_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("nr,titel,inhalt\n1,Wind,Rotor\n")
    assert read(tmp_path / "new.csv", text_column="titel,inhalt", id_column="nr") == {
        "1": "Wind\nRotor"
    }
    with pytest.raises(DataError, match="there is no column 'text'") as caught:
        read(tmp_path / "new.csv")
    assert "nr, titel, inhalt" in caught.value.expected


def test_no_message_holds_a_document(tmp_path: Path) -> None:
    """Without a header the first document is taken for the names of columns."""
    (tmp_path / "new.csv").write_text(
        f'"The patient {"and again " * 50}","e11.9"\n"another","r50"\n'
    )
    with pytest.raises(DataError, match="there is no column 'text'") as caught:
        read(tmp_path / "new.csv")
    assert len(f"{caught.value.expected}{caught.value.todo}") < 400


def test_empty_texts_and_long_ones_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = Listener()
    monkeypatch.setattr(new_texts, "LONG_TEXT", 3)
    (tmp_path / "a.txt").write_text(" \n")
    assert read(tmp_path, reporter=listener) == {"a": " \n"}
    assert listener.said == ["1 of 1 texts are empty: nothing is suggested for them"]
    (tmp_path / "a.txt").write_text("cough")
    read(tmp_path, reporter=listener)
    assert listener.said[1:] == [
        "1 of 1 texts have more than 3 characters; with --lines each line is a text"
    ]


def test_a_table_with_other_names_is_read_where_its_texts_are_found(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("Title,Abstract\nA title,an abstract\n")
    context = make_context(components=installed(), reporter=SilentReporter())
    guess, listener = partial(guess_text, context), Listener()
    found = read(path, data=DataSection(text_column="body"), reporter=listener, guess=guess)
    assert found == {"1": "A title\nan abstract"}
    assert listener.said == [
        f"{path} has no column 'body': texts are the column Title and Abstract (--text-column)"
    ]
    with pytest.raises(DataError, match="there is no column 'Titel'"):
        read(path, text_column="Titel", guess=guess)


def test_labels_of_the_corpus_are_never_called_ids(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text,tags,nr\na,x,7\nb,y,8\n")
    listener = Listener()
    read(path, data=DataSection(labels_column="tags"), reporter=listener)
    assert listener.said == [
        "there is no column 'doc_id': the texts are numbered by row; --id-column names their ids, "
        "perhaps 'nr'"
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("of", [1, 2, 4, 9])
def test_shares_make_the_whole_whatever_is_read_together(
    size: int, of: int, tmp_path: Path
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text\n" + "".join(f"word{row}\n" for row in range(7)))
    reader = TextReader(data=DataSection(), reporter=SilentReporter())
    shares = [reader.open(str(path), size).take(Shard(number, of)) for number in range(1, of + 1)]
    assert sum(share.total or 0 for share in shares) == 7
    found = [text for share in shares for _, texts in share.blocks for text in texts]
    assert found == [f"word{row}" for row in range(7)]
