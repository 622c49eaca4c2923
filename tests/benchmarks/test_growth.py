"""Parts of a corpus are the first training documents, and the figure has a line for each system."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from tests.benchmarks import growth


def test_a_part_has_the_first_documents_and_all_of_validation(tmp_path: Path) -> None:
    splits = ["train", "test", "train", "validation", "train"]
    frame = pl.DataFrame(
        {
            "doc_id": list("abcde"),
            "text": list("abcde"),
            "labels": [["x"], ["y"], ["x", "z"], ["y"], ["w"]],
            "split": splits,
        }
    )
    frame.write_parquet(tmp_path / "whole.parquet")
    part, labels = growth.cut(tmp_path / "whole.parquet", 2, tmp_path)
    assert pl.read_parquet(part)["doc_id"].to_list() == ["a", "c", "d"]
    assert labels == 2  # x and z


def test_the_figure_shows_documents_labels_and_systems(tmp_path: Path) -> None:
    found = {
        str(size): {
            "documents": size,
            "labels": size // 2,
            "systems": {
                "plant-without-network": {"cpu_seconds": size / 9},
                "odd": {"cpu_seconds": 1},
            },
        }
        for size in (4_000, 1_000)
    }
    growth.draw(found, tmp_path / "growth.svg")
    drawn = (tmp_path / "growth.svg").read_text("utf-8")
    for shown in (
        "4,000",
        "2,000",
        "1,000",
        "500",
        "plant finetune --no-network",
        "odd",
        "processor seconds",
    ):
        assert shown in drawn
