"""A whole report: its sections, its files, and its size with very many labels."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from plant_cli.evaluation.results import Bound
from plant_cli.report.evaluated import SHARES
from plant_cli.report.labels import Found
from plant_cli.report.page import Asked, gather, write_contents


@pytest.fixture
def asked(families):
    return Asked(families=families, permutations=999, paper=False, documents=2)


def find(texts, labels):
    return Found(network=True, texts=[[(np.array([[0, 4]]), np.ones(1), "") for _ in own] for own in labels])


def test_sections_in_order_and_everything_that_is_missing(systems, asked, open_corpus, silent):
    contents = gather(systems, asked, open_corpus, find, silent)
    assert contents.title == "finetune against baseline"
    names = [section.name for section in contents.sections]
    assert names == ["headline", "parts", "frequency", "labels", "decisions", "training", "siblings", "documents", "cost"]
    assert [figure.name for figure in contents.figures][:2] == ["headline", "label-frequency"]
    assert len({figure.name for figure in contents.figures}) == len(contents.figures)
    assert any("plant pretrain-attn" in sentence for sentence in contents.missing)
    for table in (table for section in contents.sections for table in section.tables):
        said = " ".join(table.notes)
        assert all(word in said for word in ("24 documents", "labels", "convention plant", "seed 0", "95% intervals")), table.title
    for figure in contents.figures:
        assert "documents" in " ".join(figure.notes), figure.name


def test_files(systems, asked, open_corpus, silent, tmp_path):
    contents = gather(systems, asked, open_corpus, find, silent)
    page, figures, tables = tmp_path / "out" / "r.html", tmp_path / "f", tmp_path / "t"
    written = write_contents(contents, page, figures, tables)
    assert written[0] == page
    assert {path.name for path in figures.iterdir()} == {f"{f.name}.{suffix}" for f in contents.figures for suffix in ("svg", "png")}
    assert {path.name for path in tables.iterdir()} == {"headline.tex", "headline.md"}
    assert r"$\blacktriangle$" in (tables / "headline.tex").read_text()
    assert "| finetune against baseline |" in (tables / "headline.md").read_text()
    assert page.read_text().count("<svg ") == len(contents.figures)
    assert write_contents(contents, page, None, None) == [page]


def test_a_page_of_131_thousand_labels_stays_small(systems, asked, open_corpus, silent, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 131_073
    counts = rng.integers(1, 600, n)
    shares = {name: rng.random(n) for name in SHARES}
    frame = pl.DataFrame(
        {
            "label": [f"L{i}" for i in range(n)],
            "title": [f"The title of label {i}" for i in range(n)],
            "train_count": counts,
            "test_count": rng.integers(0, 4, n),
            **dict.fromkeys(("tp", "fp", "fn"), pl.Series([1] * n)),
            **shares,
        }
    )
    monkeypatch.setattr("plant_cli.report.evaluated.Evaluated.read_labels", lambda self: frame)
    contents = gather(systems, asked, open_corpus, find, silent)
    rare = next(figure for figure in contents.figures if figure.name == "rare-labels")
    assert sum(len(sample.values) for sample in rare.samples) > 10_000
    page = tmp_path / "r.html"
    write_contents(contents, page, None, None)
    assert page.stat().st_size < 2_000_000


def test_one_system_whose_metrics_are_undefined(evaluate, asked, open_corpus, silent, tmp_path):
    [system] = evaluate()
    empty = {name: Bound() for name in system.metrics.metrics}
    bare = replace(system, metrics=system.metrics.model_copy(update={"metrics": empty, "bins": {}, "calibration": None}))
    contents = gather([bare], asked, open_corpus, find, silent)
    assert contents.title == "Report on run"
    assert all(cell == "–" for row in contents.headline.rows for cell in row[1:])
    write_contents(contents, tmp_path / "r.html", None, None)
