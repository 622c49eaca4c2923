"""CodiEsp, on cases that were made up."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from plant_datasets.corpora.codiesp import load
from plant_datasets.corpora.registration import CodiespOptions

from plant_cli.api import DataSection
from plant_cli.data.documents import digest, tidy
from plant_cli.data.evidence import read_evidence

TEXT = "Paciente con fiebre y tos.\r\nSe hizo una radiografía de tórax.\n"


def write(folder: Path) -> DataSection:
    for split in ("train", "dev", "test"):
        (folder / split / "text_files").mkdir(parents=True)
        (folder / split / "text_files" / f"{split}-1.txt").write_bytes(TEXT.encode())
        if split != "test":
            (folder / split / f"{split}D.tsv").write_text(f"{split}-1\tr50.9\n{split}-1\tr05\nlost\n")
            (folder / split / f"{split}P.tsv").write_text(f"{split}-1\tbw03\n")
            spans = f"{split}-1\tDIAGNOSTICO\tr50.9\tfiebre\t13 19\n{split}-1\tPROCEDIMIENTO\tbw03\tradiografía tórax\t40 51;55 60\n"
            (folder / split / f"{split}X.tsv").write_text(spans + f"{split}-1\tDIAGNOSTICO\tr05\ttos\tx y\n")
    return DataSection(path=str(folder))


def test_codes_texts_and_spans(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), CodiespOptions())
    assert dataset.splits["train"].collect().rows() == [("train-1", TEXT, ["r50.9", "r05", "bw03"])]
    assert set(dataset.splits) == {"train", "validation"}
    assert any("texts and no gold codes" in remark for remark in dataset.remarks)
    assert "4 rows cannot be read" in dataset.remarks[-1]
    assert dataset.evidence is not None
    spans = dataset.evidence.filter(pl.col("doc_id") == "train-1").collect()
    assert spans["text"].to_list() == ["fiebre", "radiografía", "tórax"]
    kept, findings = read_evidence(dataset, {name: tidy(digest(frame.collect())) for name, frame in dataset.splits.items()})
    assert kept is not None
    assert (kept.height, findings) == (6, [])


def test_diagnoses_alone(tmp_path: Path) -> None:
    dataset = load(write(tmp_path), CodiespOptions(codes="D"))
    assert dataset.splits["train"].collect()["labels"].to_list() == [["r50.9", "r05"]]
    assert dataset.evidence is not None
    assert set(dataset.evidence.collect()["label"]) == {"r50.9"}
