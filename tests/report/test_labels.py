"""Figures and tables of labels hold what metrics.json and per_label.tsv say."""

import polars as pl

from plant_cli.report.labels import RARE, draw_frequency, draw_rare, list_extremes, name_label, write_labels

FOLDERS = {"finetune": "eval", "baseline": "eval-baseline"}


def test_f1_by_frequency_is_that_of_the_bins(systems, metrics):
    figure = draw_frequency(systems)
    assert figure is not None
    for series in figure.series:
        bins = metrics(FOLDERS[series.name])["bins"]
        for i, place in enumerate(series.x):
            bound = bins[figure.x.ticks[int(place)]]["macro-F1-present"]
            assert (series.y[i], *series.bounds(i)) == (bound["value"], bound["low"], bound["high"])
    assert list(figure.x.ticks) == ["1-5", "6-10", "11-50"]


def test_violins_are_of_the_f1_of_rare_labels_present(systems, tmp_path):
    figure = draw_rare(systems, {system.name: system.read_labels() for system in systems})
    assert figure is not None
    assert set(figure.x.ticks) <= set(RARE)
    for sample in figure.samples:
        frame = pl.read_csv(tmp_path / "run" / FOLDERS[sample.name] / "per_label.tsv", separator="\t")
        least, most = map(int, figure.x.ticks[sample.tick].split("-"))
        expected = frame.filter((pl.col("test_count") > 0) & pl.col("train_count").is_between(least, most))["F1"]
        assert sorted(sample.values) == sorted(expected.to_list())
    assert sum(len(sample.values) for sample in figure.samples) == 12  # six labels, two systems


def make(rows):
    numbers = dict.fromkeys(("precision", "recall", "F1", "F1_low", "F1_high"), pl.Float64)
    types = {"label": pl.String, "title": pl.String, "train_count": pl.Int64, "test_count": pl.Int64, **numbers}
    return pl.DataFrame(rows, schema=types, orient="row")


def test_best_and_worst_labels_by_name(systems):
    rows = [(f"l{i:02}", f"title {i}" if i else None, i, 5 + i % 2, 0.5, 0.5, i / 40, 0.0, 1.0) for i in range(40)]
    best, worst = list_extremes(systems[0], make([*rows, ("seldom", None, 1, 1, 1.0, 1.0, 1.0, 0.2, 1.0)]))
    assert [row[0] for row in best.rows][:2] == ["l39 title 39", "l38 title 38"]
    assert [row[0] for row in worst.rows][:2] == ["l01 title 1", "l02 title 2"]  # no training document has l00
    assert len(best.rows) == len(worst.rows) == 10
    assert "of the 40 labels with at least 5 documents" in best.notes[0]
    assert worst.rows[0][5] == 1 / 40


def test_few_labels_are_all_looked_at_and_none_twice(systems):
    tables = list_extremes(systems[0], make([("a", "A", 1, 1, 1.0, 1.0, 1.0, 0.2, 1.0)]))
    assert [(table.title, len(table.rows)) for table in tables] == [("Best labels of finetune", 1)]


def test_without_rare_labels_there_is_a_sentence(systems, monkeypatch):
    monkeypatch.setattr("plant_cli.report.labels.RARE", ("101-500",))
    frequency, labels = write_labels(systems)
    assert [figure.name for figure in frequency.figures] == ["label-frequency"]
    assert "no label with at most 50 training documents occurs in the test split" in frequency.missing[0]
    assert len(labels.tables) == 2  # of six labels all are among the best ten


def test_names_of_labels():
    assert [name_label("A1", title) for title in ("Cold", None, "", "A1")] == ["A1 Cold", "A1", "A1", "A1"]
