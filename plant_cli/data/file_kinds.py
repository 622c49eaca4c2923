"""Files that hold no text: what each is, by its first bytes or by what is in its archive, and
what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from plant_cli.api.errors import DataError

HEAD = 512  # bytes of a file by which it is known
TABLE_EXPECTED = "a table whose first line names its columns: JSON lines, CSV or TSV; or Parquet"
_TEXTS = (
    "take its text out, then write texts and labels into a table, or each text into a .txt file"
)
_SHEET = "open it in its program, and save the sheet as CSV in UTF-8"
_OFFICE = _SHEET + "; of a document, save its text"
_UNPACK = "unpack it, and name the file or the folder with the data"
_EXPORT = "export its rows as CSV or Parquet, and name that file"
_PICKLE = (
    "plant reads no pickle, since reading one runs its code; where you trust it, open it in "
    "Python and write it with to_parquet"
)
_OCR = "recognise its text first (OCR), then write texts and labels into a table"
_CONVERT = "write it as a table with the columns text and labels, in CSV, JSON lines or Parquet"
_BESIDE = (
    "write texts and labels into a table; a sparse matrix of labels stands beside its texts, "
    "as PECOS has it"
)
_SAID = "write down what is said first, then write texts and labels into a table"
_NOT_DATA = "name the file with the texts and their labels"
_KINDS: Sequence[tuple[str, str, tuple[bytes, ...]]] = (
    ("a PDF document", _TEXTS + "; `pdftotext` does so", (b"%PDF",)),
    ("a PostScript file", _TEXTS, (b"%!PS",)),
    ("a text in rich text format (RTF)", _TEXTS, (b"{\\rtf",)),
    (
        "a spreadsheet or document of old Office (.xls, .doc)",
        _OFFICE,
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",),
    ),
    ("a 7z archive", f"{_UNPACK}: 7z x FILE", (b"7z\xbc\xaf\x27\x1c",)),
    ("a RAR archive", f"{_UNPACK}: unrar x FILE", (b"Rar!\x1a\x07",)),
    (
        "a file packed by compress, lz4, lzip or Snappy",
        _UNPACK,
        (b"\x1f\x9d", b"\x04\x22\x4d\x18", b"LZIP", b"\xff\x06\x00\x00sNaPpY"),
    ),
    (
        "an image",
        _OCR,
        (
            b"\x89PNG",
            b"\xff\xd8\xff",
            b"GIF8",
            b"II*\x00",
            b"MM\x00*",
            b"\x00\x00\x01\x00\x01",
            b"\x00\x00\x00\x0cjP  ",
        ),
    ),
    ("a sound or a video", _SAID, (b"ID3", b"OggS", b"fLaC", b"\x1aE\xdf\xa3")),
    (
        "an SQLite database",
        "write its rows out: sqlite3 -header -csv FILE 'SELECT …' > data.csv",
        (b"SQLite format 3\x00",),
    ),
    ("a PostgreSQL dump", _EXPORT, (b"PGDMP",)),
    ("a Python pickle", _PICKLE, tuple(b"\x80" + bytes([version]) for version in range(2, 6))),
    ("a numpy array", _BESIDE, (b"\x93NUMPY",)),
    (
        "an HDF5 file",
        "open it in Python (pandas.read_hdf, h5py), and write it as Parquet",
        (b"\x89HDF\r\n\x1a\n",),
    ),
    (
        "an Arrow or Feather file",
        "write it as Parquet: polars.read_ipc(FILE).write_parquet(…)",
        (b"ARROW1", b"FEA1"),
    ),
    ("an ORC or Avro file", "write it as Parquet", (b"ORC", b"Obj\x01")),
    ("an encrypted Parquet file", "write it without encryption", (b"PARE",)),
    (
        "a MATLAB file",
        "open it with scipy.io.loadmat, and write texts and labels into a table",
        (b"MATLAB 5.0 MAT-file",),
    ),
    (
        "a file of R (RData, rds)",
        "write it with write.csv or arrow::write_parquet",
        (b"RDX2\n", b"RDX3\n", b"RDA3\n", b"X\n\x00\x00\x00"),
    ),
    ("a file of SPSS or Stata", _EXPORT, (b"$FL2", b"$FL3", b"<stata_dta>")),
    ("a program", _NOT_DATA, (b"\x7fELF", b"MZ", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe")),
    (
        "a pointer of Git LFS, not the file that it stands for",
        "fetch the file itself: git lfs pull",
        (b"version https://git-lfs",),
    ),
    ("a model in GGUF format", _NOT_DATA, (b"GGUF",)),
)
_AT = (  # those that are known by bytes further on: where, bytes, what, remedy
    (257, b"ustar", "a tar archive", f"{_UNPACK}: tar -xf FILE"),
    (8, b"WEBP", "an image", _OCR),
    (8, b"WAVE", "a sound or a video", _SAID),
    (4, b"ftyp", "a sound or a video", _SAID),
    (
        8,
        b"DUCK",
        "a DuckDB database",
        "write its rows out: duckdb FILE \"COPY (SELECT …) TO 'data.parquet'\"",
    ),
)
_IN_TEXT: Sequence[tuple[str, str, str]] = (  # by a pattern of the beginning of a text
    (
        "a web page",
        "look at it: in place of the file, a page about it or an error may have been saved; "
        "fetch the file itself",
        r"(?is)\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body)\b",
    ),
    (
        "an XML file",
        _CONVERT,
        r"(?is)\s*(?:<\?xml\s|<!--.*?-->\s*<|<!doctype\s|<[a-z][\w.:-]*(?:\s+[\w.:-]+\s*=\s*\"[^\"]*\")*\s*>\s*<)",
    ),
    ("an ARFF file", _CONVERT, r"(?i)(?:\s|%[^\n]*\n)*@relation\b"),
    (
        "an SQL script",
        _EXPORT,
        r"(?is)(?:\s|--[^\n]*\n|/\*.*?\*/;?)*(?:create\s+(?:table|database|schema)|insert\s+into|drop\s+table|set\s+\w+\s*=|pragma)\b",
    ),
    (
        "a list of references (BibTeX, RIS, PubMed)",
        "export it as CSV from its program, and name that file",
        r"(?i)(?:\s|%[^\n]*\n)*(?:@(?:article|book|inproceedings|incollection|misc|"
        r"phdthesis|techreport)\s*\{|TY  - |PMID- )",
    ),
    ("a file of MARC records", _CONVERT, r"\d{5}[acdnp][a-z].{2}[a ]22\d{5}"),
    (
        "a TREC run: predictions of a tool",
        "name a corpus; `plant eval --predictions FILE` reads predictions",
        r"\S+[ \t]+Q0[ \t]+\S+[ \t]+\d+[ \t]+\S+[ \t]+\S+\s",
    ),
    ("a LaTeX source", _TEXTS, r"(?:\s|%[^\n]*\n)*\\document(?:class|style)\b"),
)
_MEMBERS: Sequence[tuple[str, str, str]] = (  # what is in a zip archive of a program
    (r"(?:xl/.*|.*\.ods)", "a spreadsheet", _SHEET),
    (r"word/.*", "a Word document", _TEXTS + "; `pandoc -t plain` does so"),
    (r"ppt/.*", "a presentation", _TEXTS),
    (r"content\.xml", "a document or spreadsheet of OpenDocument", _OFFICE),
    (r"META-INF/container\.xml", "an e-book (EPUB)", _TEXTS + "; `pandoc -t plain` does so"),
    (r"(?:.*/)?data\.pkl", "a file of PyTorch, which holds a pickle", _PICKLE),
    (r"META-INF/MANIFEST\.MF", "a program", _NOT_DATA),
)


def refuse_kind(head: bytes, where: str, expected: str, within: str = "") -> None:
    """`DataError` for a file (or what is packed `within` another) that begins with bytes that
    no text has; it says what it is.
    """
    known = next(((what, todo) for what, todo, starts in _KINDS if head.startswith(starts)), None)
    known = known or next(
        ((what, todo) for place, mark, what, todo in _AT if head[place:].startswith(mark)), None
    )
    if known is not None:
        raise DataError(
            f"this is {known[0]}{within}",
            where=where,
            expected=expected,
            todo=known[1].replace("FILE", where),
        )


def refuse_text(head: str, where: str) -> None:
    """`DataError` for a text that begins as no table does; it says what it is."""
    for what, todo, pattern in _IN_TEXT:
        if re.match(pattern, head[:4096].lstrip("\ufeff")):
            raise DataError(f"this is {what}", where=where, expected=TABLE_EXPECTED, todo=todo)


def refuse_members(names: Sequence[str], where: str, expected: str) -> None:
    """`DataError` for a zip archive that is the file of a program, by what is in it."""
    for pattern, what, todo in _MEMBERS:
        if any(re.fullmatch(pattern, name) for name in names):
            raise DataError(f"this is {what}", where=where, expected=expected, todo=todo)
    if names and all(name.endswith(".npy") for name in names):
        raise DataError(
            "this is a file of numpy arrays (.npz)", where=where, expected=expected, todo=_BESIDE
        )
