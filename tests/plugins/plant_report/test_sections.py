"""Every section shows what the records hold, and says what they do not hold."""

import json
from dataclasses import replace

import polars as pl
import pytest
from plant_report.evaluated import find_tests
from plant_report.result_sections import (
    describe_systems,
    draw_frequency,
    draw_precision,
    draw_rare,
    draw_reliability,
    list_extremes,
    make_headline,
    write_headline,
    write_label_sections,
    write_marks,
    write_part_sections,
    write_scores,
)
from plant_report.training_section import (
    draw_planting,
    draw_sizes,
    read_curve,
    read_operations,
    tabulate_cost,
    write_cost,
    write_training,
)

from plant_cli.api import ArtefactError
from plant_cli.data.printed_tables import name_label
from plant_cli.evaluation.metric_tables import show_bound
from plant_cli.evaluation.results import (
    Bound,
    CalibrationRecord,
    MarkedWords,
    MarkFigures,
    ReliabilityBin,
)

FOLDERS = {"finetune": "eval", "baseline": "eval-baseline"}
EPOCHS = [
    {
        "epoch": 0,
        "loss": None,
        "MAP": 0.1,
        "macro-F1": 0.05,
        "nDCG@1000": 0.6,
        "random nDCG@1000": 0.4,
    },
    {
        "epoch": 1,
        "loss": 2.5,
        "MAP": 0.2,
        "macro-F1": 0.15,
        "nDCG@1000": 0.55,
        "random nDCG@1000": 0.4,
    },
]


def show(bound):
    return f"{100 * bound['value']:.1f} [{100 * bound['low']:.1f}, {100 * bound['high']:.1f}]"


def change(system, **metrics):
    return replace(system, metrics=system.metrics.model_copy(update=metrics))


def test_main_metrics_are_those_of_the_evaluation(systems, metrics, painted):
    table = make_headline(systems, {}, paper=False)
    assert [column.name for column in table.columns] == ["metric", "finetune", "baseline"]
    rows = {row[0]: row[1:] for row in table.rows}
    for name in ("P@1", "macro-F1"):
        assert rows[name] == [show(metrics(folder)["metrics"][name]) for folder in FOLDERS.values()]
    assert "24 documents of test; macro-F1 over 6 labels" in table.notes[0]
    section = write_headline(systems, table, {})
    names = [label.get_text() for label in painted(section.drawings[0])["axes"].get_yticklabels()]
    for system in systems:
        values, at = painted(section.drawings[0])[system.name]
        assert (
            values[[round(y) for y in at].index(names.index("micro-F1"))]
            == 100 * system.metrics.metrics["micro-F1"].value
        )
    assert "`plant significance finetune" in section.missing[0]


def test_differences_are_those_that_significance_recorded(systems, played, tmp_path):
    assert find_tests(systems) == {}
    played("significance", systems=["finetune", "baseline"], bootstrap=40, permutations=500)
    recorded = json.loads((tmp_path / "run" / "significance" / "significance.json").read_text())[
        "comparisons"
    ]
    tests = find_tests(systems)
    for paper, key in ((False, "text"), (True, "text_paper")):
        table = make_headline(systems, tests, paper=paper)
        assert table.columns[-1].name == "finetune against baseline"
        assert {row[0]: row[-1] for row in table.rows} == {c["metric"]: c[key] for c in recorded}
    assert any("▲" in c["text"] for c in recorded)
    assert write_headline(systems, table, tests).missing == []
    assert find_tests(systems[::-1]) == {}  # the first system is A
    other_gold = change(systems[0], gold="0" * 64)
    assert find_tests([other_gold, systems[1]]) == {}
    played("predict", force=True, split="validation")  # a test that is out of date does not count
    assert find_tests(systems) == {}


def test_three_systems_are_rows_with_marks_against_the_first(systems):
    third = replace(systems[1], name="third")
    tests = {
        ("P@5", "baseline"): {"text": "1▲ (", "text_paper": "1"},
        ("P@5", "third"): {"text": "1▼ (", "text_paper": "1"},
    }
    table = make_headline([*systems, third], tests, paper=False)
    at = [column.name for column in table.columns].index("P@5")
    first, other = (f"{100 * system.metrics.metrics['P@5'].value:.1f}" for system in systems)
    assert [[row[0], row[at]] for row in table.rows] == [
        ["finetune", first],
        ["baseline", f"{other}▼"],
        ["third", f"{other}▲"],
    ]
    assert [row[at] for row in make_headline([*systems, third], tests, paper=True).rows] == [
        first,
        other,
        other,
    ]


def test_undefined_values_are_a_dash_and_not_drawn(systems, painted):
    bound = systems[0].metrics.metrics["P@1"]
    assert show_bound(None) == show_bound(Bound()) == "–"
    assert show_bound(bound.model_copy(update={"low": None})) == "100.0"
    bare = change(systems[0], metrics={"P@5": Bound()}, bins={})
    assert list(write_headline([bare], make_headline([bare], {}, paper=False), {}).drawings) == []


def test_systems_that_were_not_trained_here_say_what_they_are(systems):
    predict = (
        systems[0]
        .stages["predict"]
        .model_copy(
            update={"summary": {"average": {"finetune": "a", "baseline": "b"}}, "tag": "ens"}
        )
    )
    record = systems[0].record.model_copy(update={"tag": "ens", "inputs": {"predict-ens": "hash"}})
    average = replace(
        systems[0], tag="ens", record=record, stages={**systems[0].stages, "predict-ens": predict}
    )
    tool = replace(
        systems[0],
        tag="tool",
        record=systems[0].record.model_copy(
            update={"options": {"predictions": "/x/omikuji.parquet"}}
        ),
    )
    leaking = change(systems[0], leakage=True)
    table = describe_systems([average, tool, leaking])
    assert [row[2] for row in table.rows[:2]] == [
        "average of finetune, baseline",
        "another tool (omikuji.parquet)",
    ]
    assert any(note.startswith("LEAKAGE: 'finetune'") for note in table.notes)
    assert write_training([average]).drawings == []


def test_systems_of_other_labels_are_named(systems):
    notes = make_headline(
        [systems[0], replace(systems[1], label_hash="other")], {}, paper=False
    ).notes
    assert any("'baseline' was trained on other labels" in note for note in notes)


def test_parts_and_all_together(systems, metrics, painted):
    parts = {
        "words": {"P@1": Bound(value=0.25, low=0.125, high=0.5)},
        "network": {"P@1": Bound(value=0.5)},
    }
    section = write_part_sections([change(systems[0], parts=parts), systems[1]])
    [table], [drawing], whole = section.tables, section.drawings, metrics()["metrics"]["P@1"]
    assert [row[:2] for row in table.rows] == [
        ["words", "25.0 [12.5, 50.0]"],
        ["network", "50.0"],
        ["all together", show(whole)],
    ]
    assert [painted(drawing)[name][0][0] for name in ("words", "network", "all together")] == [
        25,
        50,
        100 * whole["value"],
    ]
    assert section.missing[0].startswith(
        "'baseline' has no parts: `plant finetune --tag baseline --scorers"
    )


def test_words_against_gold_spans_are_those_of_the_evaluation(systems, painted):
    assert write_marks(systems) == []
    figures = {
        "marked words": MarkFigures(f1=Bound(value=0.3, low=0.2, high=0.4)),
        "5 by words": MarkFigures(f1=Bound(value=0.1)),
    }
    marks = MarkedWords(documents=2, pairs=5, figures=figures)
    measured = replace(
        systems[0], metrics=systems[0].metrics.model_copy(update={"marked_words": marks})
    )
    [section] = write_marks([measured, systems[1]])
    [table] = section.tables
    assert table.title == "Marked words of finetune on test: 5 gold labels of 2 documents"
    assert table.rows[0] == ["marked words", None, None, 0.3, "[20.0, 40.0]"]
    [drawing] = section.drawings
    assert painted(drawing)["finetune"][0] == pytest.approx([30, 10])


def test_f1_by_frequency_is_that_of_the_bins(systems, metrics, painted):
    [drawing] = draw_frequency(systems)
    ticks = [label.get_text() for label in painted(drawing)["axes"].get_xticklabels()]
    assert ticks == ["1-5", "6-10", "11-50"]
    for system in systems:
        bins = metrics(FOLDERS[system.name])["bins"]
        at, values = painted(drawing)[system.name]
        assert values == [100 * bins[ticks[round(x)]]["macro-F1-present"]["value"] for x in at]


def test_violins_are_of_the_f1_of_rare_labels_present(systems, painted):
    [drawing] = draw_rare(systems, {system.name: system.read_labels() for system in systems})
    for system in systems:
        frame = system.read_labels().filter(
            (pl.col("test_count") > 0) & pl.col("train_count").is_between(1, 5)
        )
        assert painted(drawing)[system.name][1] == [pytest.approx(100 * frame["F1"].mean())]


def make(rows):
    numbers = dict.fromkeys(("precision", "recall", "F1", "F1_low", "F1_high"), pl.Float64)
    types = {
        "label": pl.String,
        "title": pl.String,
        "train_count": pl.Int64,
        "test_count": pl.Int64,
        **numbers,
    }
    return pl.DataFrame(rows, schema=types, orient="row")


def test_best_and_worst_labels_by_name(systems):
    rows = [
        (f"l{i:02}", f"title {i}" if i else None, i, 5 + i % 2, 0.5, 0.5, i / 40, 0.0, 1.0)
        for i in range(40)
    ]
    best, worst = list_extremes(
        systems[0], make([*rows, ("seldom", None, 1, 1, 1.0, 1.0, 1.0, 0.2, 1.0)])
    )
    assert [row[0] for row in best.rows][:2] == ["l39 title 39", "l38 title 38"]
    assert [row[0] for row in worst.rows][:2] == [
        "l01 title 1",
        "l02 title 2",
    ]  # no training document has l00
    assert len(best.rows) == len(worst.rows) == 10
    assert "of the 40 labels with at least 5 documents" in best.notes[0]
    assert worst.rows[0][5] == 1 / 40
    few = list_extremes(systems[0], make([("a", "A", 1, 1, 1.0, 1.0, 1.0, 0.2, 1.0)]))
    assert [(table.title, len(table.rows)) for table in few] == [("Best labels of finetune", 1)]
    assert [name_label("A1", title) for title in ("Cold", None, "", "A1")] == [
        "A1 Cold",
        "A1",
        "A1",
        "A1",
    ]


def test_without_rare_labels_there_is_a_sentence(systems, monkeypatch):
    monkeypatch.setattr("plant_report.result_sections.RARE", ("101-500",))
    frequency, labels = write_label_sections(systems)
    assert [drawing.name for drawing in frequency.drawings] == ["label-frequency"]
    assert (
        "No label with at most 50 training documents occurs in the test split"
        in frequency.missing[0]
    )
    assert len(labels.tables) == 2  # of six labels all are among the best ten


def test_reliability_is_the_recorded_one(systems, metrics, painted):
    recorded = metrics()["calibration"]
    [drawing] = draw_reliability(systems[:1])
    filled = [one for one in recorded["bins"] if one["pairs"]]
    line = painted(drawing)[f"finetune (ECE {100 * recorded['ECE']:.2g})"]
    assert line == (
        [100 * one["probability"] for one in filled],
        [100 * one["right"] for one in filled],
    )
    assert f"ECE of finetune {100 * recorded['ECE']:.2g} [" in drawing.caption
    bins = [
        ReliabilityBin(pairs=0, probability=0, right=0),
        ReliabilityBin(pairs=4, probability=0.5, right=0.25),
    ]
    [both] = draw_reliability(
        [change(systems[0], calibration_network=CalibrationRecord(ECE=0.25, bins=bins))]
    )
    assert painted(both)["finetune, network alone (ECE 25)"] == (
        [50],
        [25],
    )  # empty bins are not drawn


def test_precision_against_recall_comes_from_the_recorded_pairs(systems, painted):
    gold = systems[0].read_labels()["test_count"].sum()
    bins = [
        ReliabilityBin(pairs=10, probability=0.1, right=0.2),
        ReliabilityBin(pairs=4, probability=0.9, right=0.75),
    ]
    [drawing] = draw_precision(
        [change(systems[0], calibration=CalibrationRecord(ECE=0.1, bins=bins))]
    )
    recall, precision = painted(drawing)["finetune"]
    assert recall == pytest.approx([100 * 3 / gold, 100 * 5 / gold])
    assert precision == pytest.approx([75, 100 * 5 / 14])


def test_thresholds_that_were_chosen_are_shown(systems, monkeypatch):
    share = {"value": 0.5, "low": 0.25, "high": 0.75}
    decision = {
        "labels": {"value": 1.234, "low": None, "high": None},
        "precision": share,
        "recall": share,
    }
    split = {"assign": decision, "review": decision, "reject": decision}
    found = {
        "target": "precision=0.9",
        "level": 0.95,
        "replicates": 40,
        "seed": 0,
        "splits": {"validation": split},
    }
    monkeypatch.setattr(
        "plant_report.evaluated.Evaluated.read_decisions",
        lambda self: {"thresholds": found} if self.tag is None else {},
    )
    section = write_scores(systems)
    assert section.tables[1].title == "Thresholds of finetune for precision=0.9 (thresholds)"
    assert section.tables[1].rows[0] == [
        "validation",
        "assign",
        "1.23",
        "50.0 [25.0, 75.0]",
        "50.0 [25.0, 75.0]",
    ]
    assert "No thresholds were chosen for 'baseline'" in section.missing[0]


def test_scores_that_are_no_probabilities_are_a_sentence(systems):
    section = write_scores([change(system, calibration=None) for system in systems])
    assert list(section.drawings) == []
    assert "`plant eval --tag baseline --force` measures it" in section.missing[1]
    row = section.tables[0].rows[0]
    assert row[1] == show_bound(systems[0].metrics.metrics["micro-precision"])


@pytest.fixture
def trained(systems, tmp_path):
    """The systems with epochs, the first also with a stage 1."""
    for folder in ("finetune", "finetune-baseline", "pretrain-attn"):
        path = tmp_path / "run" / folder
        path.mkdir(exist_ok=True)
        (path / "history.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in EPOCHS))
    stage1 = (
        systems[0]
        .stages["finetune"]
        .model_copy(update={"stage": "pretrain-attn", "summary": {"nDCG@1000": 0.6, "tau": 0.2}})
    )
    return [replace(systems[0], stages={"pretrain-attn": stage1, **systems[0].stages}), systems[1]]


def test_curves_are_the_recorded_epochs(trained, painted):
    drawings = {drawing.name: painted(drawing) for drawing in write_training(trained).drawings}
    for name, key in (
        ("training-map", "MAP"),
        ("training-macro-f1", "macro-F1"),
        ("attention", "nDCG@1000"),
        ("planting", "nDCG@1000"),
    ):
        assert drawings[name]["finetune"] == ([0, 1], [100 * epoch[key] for epoch in EPOCHS])
    assert drawings["training-loss"]["finetune"] == ([1], [2.5])
    assert drawings["attention"]["finetune, random order"][1] == [40, 40]
    assert set(drawings["planting"]) == {"finetune", "finetune, random order", "axes"}
    assert read_curve(
        [{"epoch": 0, "MAP": None}, {"epoch": 1}, {"epoch": 2, "MAP": 0.5}], "MAP"
    ) == [(2, Bound(value=50))]


@pytest.mark.parametrize(
    "line",
    [
        '{"epoch": 1, "MAP": "0.5"}',
        '{"epoch": "one", "MAP": 0.5}',
        '{"MAP": 0.5}',
        "[1, 0.5]",
        "3",
        "{",
        "",
        '{"epoch": 1, "MAP": {"a": 1}}',
    ],
)
@pytest.mark.parametrize("stage", ["finetune", "pretrain-attn"])
def test_a_history_that_is_no_table_of_numbers_is_told_with_its_line(
    trained, tmp_path, stage, line
):
    path = tmp_path / "run" / stage / "history.jsonl"
    path.write_text(json.dumps(EPOCHS[0]) + f"\n{line}\n")
    with pytest.raises(
        ArtefactError, match=f"the history of '{stage}' is damaged: line 2 is no epoch with figures"
    ) as caught:
        write_training(trained)
    assert caught.value.where == str(path)


def test_without_a_network_every_curve_is_a_sentence(systems):
    section = write_training(systems)
    assert list(section.drawings) == []
    starts = (
        "There are no training curves",
        "There is no curve of stage 1",
        "Stage 1 against the result",
        "The result against the size",
    )
    assert len(section.missing) == 4
    assert all(
        sentence.startswith(start) for sentence, start in zip(section.missing, starts, strict=True)
    )


def test_a_metric_that_was_not_evaluated_is_not_told_as_missing_systems(systems, monkeypatch):
    monkeypatch.setattr("plant_report.training_section.RESULT", "macro-AUC")
    *_, sentence = write_training(systems).missing
    assert sentence.startswith(
        f"The evaluation of {', '.join(repr(system.name) for system in systems)} has no macro-AUC"
    )
    assert "plant eval --force" in sentence


def test_stage_1_and_the_size_of_train_against_the_result(trained, metrics, painted):
    assert draw_planting(trained) == []  # one system has a stage 1
    assert draw_sizes(trained) == []
    other = trained[0].stages["pretrain-attn"].model_copy(update={"summary": {"nDCG@1000": 0.7}})
    [drawing] = draw_planting(
        [trained[0], replace(trained[1], stages={"pretrain-attn": other, **trained[1].stages})]
    )
    for (name, folder), quality in zip(FOLDERS.items(), (60, 70), strict=True):
        assert painted(drawing)[name] == (
            [quality],
            [100 * metrics(folder)["metrics"]["macro-F1"]["value"]],
        )
    [sizes] = draw_sizes([trained[0], replace(trained[0], name="half", documents={"train": 18})])
    [(at, values)] = [
        line for name, line in painted(sizes).items() if name != "axes"
    ]  # of one kind: joined by a line
    assert (at, values) == ([18, 36], [100 * metrics()["metrics"]["macro-F1"]["value"]] * 2)
    [sizes] = draw_sizes(
        [trained[0], replace(trained[0], name="few", tag="few", documents={"train": 9}, part=0.25)]
    )
    assert [line[0] for name, line in painted(sizes).items() if name != "axes"] == [[9, 36]]


def test_costs_are_the_records(systems, painted):
    summary = {
        "parameters": 1000,
        "trained_parameters": 10,
        "operations_per_document": 2e6,
        "epochs": 3,
        "peak_memory_gb": 1.5,
    }
    record = (
        systems[0].stages["finetune"].model_copy(update={"seconds": 12.345, "summary": summary})
    )
    system = replace(systems[0], stages={**systems[0].stages, "finetune": record})
    table = tabulate_cost(system)
    assert table.rows[0][:6] == ["finetune", 12.3, 1.5, 1000, 10, 216e6]
    assert read_operations(system, record) == 2e6 * 3 * 36
    section = write_cost([system])
    assert list(section.missing) == []
    axes = painted(section.drawings[0])["axes"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["finetune", "predict", "eval"]
    assert axes.patches[0].get_width() == 12.345
    assert "`plant finetune --force` records them" in write_cost(systems).missing[0]
