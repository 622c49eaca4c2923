"""Corpora of any content, and small writers of the formats that are only read: what every
format is tested with.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import strategies as st
from plant_formats import FORMATS
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataSection, Dataset, DatasetSpec
from plant_cli.data.documents import DOCUMENT_SCHEMA
from plant_cli.data.listed_values import MISSING

CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0\ufeff")
_TEXTS = st.text(CHARACTERS, max_size=40).filter(
    lambda text: text not in MISSING
)  # which are no texts in tables
TEXTS = _TEXTS | st.sampled_from(
    ["a title\nand a body", "tabs\tand\r\nline ends", '"quoted", <text>', " blanks ", ""]
)
IDS = st.text(st.sampled_from("abcdefgh0123456789_-äß"), min_size=1, max_size=8)
PLAIN = st.text(st.sampled_from("abcXYZ019.:/#-_äλ"), min_size=1, max_size=8)
_ANY = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")) | st.just(" "),
    min_size=1,
    max_size=8,
)
ANY_LABEL = _ANY.map(str.strip).filter(
    lambda label: label not in MISSING
)  # which are no labels in tables
SPECS: Mapping[str, DatasetSpec] = {spec.name: spec for spec in FORMATS}
Rows = Sequence[tuple[str, str, list[str]]]  # ids, texts on one line, labels


def one_line(text: str) -> str:
    """A text whose line breaks and tabs became blanks."""
    return re.sub(r"[\r\n\t]+", " ", text)


@st.composite
def corpora(draw: st.DrawFn, labels: st.SearchStrategy[str]) -> Dataset:
    """Tidy corpora of up to three splits with titles of some labels."""
    names = draw(st.lists(labels.filter(bool), min_size=1, max_size=5, unique=True))
    kinds = draw(st.sampled_from([("train",), ("train", "test"), ("train", "validation", "test")]))
    ids = draw(st.lists(IDS, min_size=9, max_size=9, unique_by=str.casefold))
    splits = {}
    for number, split in enumerate(kinds):
        count = draw(st.integers(1, 3))
        own = [
            draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) for _ in range(count)
        ]
        texts = [draw(TEXTS).replace("/SEP/", " ") for _ in own]
        splits[split] = pl.DataFrame(
            {"doc_id": ids[3 * number : 3 * number + count], "text": texts, "labels": own},
            schema=DOCUMENT_SCHEMA,
        ).lazy()
    titles = [draw(st.none() | st.sampled_from(["a title", "Öl, roh", "x"])) for _ in names]
    return Dataset(
        splits=splits,
        labels=pl.DataFrame(
            {"label": names, "title": titles}, schema={"label": pl.String, "title": pl.String}
        ).lazy(),
    )


def read(name: str, path: Path, options: Mapping[str, Any] = {}, **data: Any) -> Dataset:
    """The corpus that a format reads; `data` are options of the section of that name."""
    dataset = SPECS[name].load(DataSection(path=str(path), **data), SPECS[name].options(**options))
    assert isinstance(dataset, Dataset)
    return dataset


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files with their folders."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def write_format(name: str, dataset: Dataset, folder: Path, suffix: str = "") -> list[str]:
    """Write a corpus in a format of other tools, with texts on one line where the format is
    only read; the labels by their numbers.
    """
    if (write := SPECS[name].write) is not None:
        write(dataset, folder, suffix)
        return []
    splits = {
        split: [(i, one_line(t), ls) for i, t, ls in frame.collect().iter_rows()]
        for split, frame in dataset.splits.items()
    }
    labels = sorted({label for rows in splits.values() for *_, own in rows for label in own})
    numbers = {label: number for number, label in enumerate(labels)}
    for split, rows in splits.items():
        WRITERS[name](folder, split, rows, numbers)
    if name in ("text2text", "pecos"):
        write_lines(folder / "output-items.txt", labels)
    if name == "xmlrepository":
        write_lines(
            folder / "lbl.json",
            [json.dumps({"uid": label, "title": f"Title {label}"}) for label in labels],
        )
    return labels


def write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")


def _number(labels: Sequence[str], numbers: Mapping[str, int], sign: str = ",") -> str:
    return sign.join(str(number) for number in sorted(numbers[label] for label in labels))


def _write_sparse(
    folder: Path, split: str, rows: Rows, numbers: Mapping[str, int], first: int
) -> None:
    words = sorted({word for _, text, _ in rows for word in text.split()})
    counts = [Counter(words.index(word) + first for word in text.split()) for _, text, _ in rows]
    lines = [
        f"{_number(labels, numbers)} {' '.join(f'{n}:{c}' for n, c in sorted(own.items()))}"
        for (*_, labels), own in zip(rows, counts, strict=True)
    ]
    write_lines(
        folder / f"{split}.{'txt' if first == 0 else 'svm'}",
        [*([f"{len(rows)} {len(words)} {len(numbers)}"] if first == 0 else []), *lines],
    )
    write_lines(folder / f"{split}_raw_texts.txt", [text for _, text, _ in rows])


def _write_attentionxml(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    write_lines(folder / f"{split}_texts.txt", [text for _, text, _ in rows])
    write_lines(folder / f"{split}_labels.txt", [" ".join(labels) for *_, labels in rows])


def _write_pecos(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    name = {"train": "trn", "validation": "val", "test": "tst"}[split]
    write_lines(folder / f"X.{name}.txt", [text for _, text, _ in rows])
    pairs = [(row, numbers[label]) for row, (*_, labels) in enumerate(rows) for label in labels]
    cells = ([1.0] * len(pairs), ([row for row, _ in pairs], [column for _, column in pairs]))
    save_npz(folder / f"Y.{name}.npz", csr_array(cells, shape=(len(rows), len(numbers))))


def _write_xml(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    name = {"train": "trn", "validation": "val", "test": "tst"}[split]
    lines = [
        {"uid": i, "title": text, "content": "", "target_ind": [numbers[label] for label in labels]}
        for i, text, labels in rows
    ]
    write_lines(folder / f"{name}.json", [json.dumps(line) for line in lines])


def _write_hub(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    import datasets

    text = datasets.Value("string")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(DOCUMENT_SCHEMA)}
    features = datasets.Features({"doc_id": text, "text": text, "labels": datasets.Sequence(text)})
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(str(folder / split))
    known = (
        json.loads((folder / "dataset_dict.json").read_text())["splits"]
        if (folder / "dataset_dict.json").exists()
        else []
    )
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [*known, split]}))


def _write_arff(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    cells = [
        (
            text.replace("\\", r"\\").replace("'", r"\'"),
            [str(int(label in labels)) for label in (*numbers, "?")],
        )
        for _, text, labels in rows
    ]
    header = [
        "@relation x",
        "@attribute text string",
        *(f"@attribute '{label}' {{0,1}}" for label in (*numbers, "?")),
        "@data",
    ]
    write_lines(
        folder / f"{split}.arff", [*header, *(f"'{text}',{','.join(own)}" for text, own in cells)]
    )


def _write_posts(folder: Path, split: str, rows: Rows, numbers: Mapping[str, int]) -> None:
    lines = [
        f'<row Id="{i}" PostTypeId="1" Body="{t}" '
        f'Tags="{"".join(f"&lt;{label}&gt;" for label in labels)}" />'
        for i, t, labels in rows
    ]
    write_lines(folder / f"{split}.xml", ["<posts>", *lines, "</posts>"])


WRITERS: dict[str, Callable[[Path, str, Rows, Mapping[str, int]], None]] = {
    "attentionxml": _write_attentionxml,
    "pecos": _write_pecos,
    "xmlrepository": _write_xml,
    "huggingface-dataset": _write_hub,
    "xmlrepository-features": lambda folder, split, rows, numbers: _write_sparse(
        folder, split, rows, numbers, 0
    ),
    "libsvm": lambda folder, split, rows, numbers: _write_sparse(folder, split, rows, numbers, 1),
    "text2text": lambda folder, split, rows, numbers: write_lines(
        folder / f"{split}.txt", [f"{_number(labels, numbers)}\t{text}" for _, text, labels in rows]
    ),
    "libmultilabel": lambda folder, split, rows, numbers: write_lines(
        folder / f"{split}.txt", [f"{i}\t{' '.join(labels)}\t{text}" for i, text, labels in rows]
    ),
    "fasttext": lambda folder, split, rows, numbers: write_lines(
        folder / f"{split}.txt",
        [" ".join([*(f"__label__{label}" for label in labels), text]) for _, text, labels in rows],
    ),
    "annotations": lambda folder, split, rows, numbers: write_lines(
        folder / f"{split}.jsonl",
        [json.dumps({"id": i, "text": text, "label": labels}) for i, text, labels in rows],
    ),
    "references": lambda folder, split, rows, numbers: write_lines(
        folder / f"{split}.ris",
        [
            f"TY  - JOUR\nTI  - {text}\nKW  - {';'.join(labels)}\nER  - \n"
            for _, text, labels in rows
        ],
    ),
    "arff": _write_arff,
    "stackexchange": _write_posts,
}
