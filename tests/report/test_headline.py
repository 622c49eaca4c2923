"""The headline holds the values of metrics.json, and the words of `plant significance`."""

import json
from dataclasses import replace

from plant_cli.report.compared import (
    compare_evaluated,
    describe_systems,
    draw_bounds,
    draw_headline,
    lay_beside,
    make_headline,
    show_bound,
    write_headline,
)


def test_values_are_those_of_the_evaluation(systems, metrics):
    table = make_headline(systems, [], paper=False)
    assert [column.name for column in table.columns] == ["metric", "finetune", "baseline"]
    rows = {row[0]: row[1:] for row in table.rows}
    for name in ("P@1", "macro-F1"):
        shown = [metrics(folder)["metrics"][name] for folder in ("eval", "eval-baseline")]
        assert rows[name] == [f"{100 * m['value']:.1f} [{100 * m['low']:.1f}, {100 * m['high']:.1f}]" for m in shown]
    assert "24 documents of test; macro-F1 over 6 labels" in table.notes[0]


def test_arrows_are_those_of_significance(systems, played, families, tmp_path, silent, open_corpus):
    played("significance", systems=["finetune", "baseline"], bootstrap=40, permutations=500)
    said = {c["metric"]: c for c in json.loads((tmp_path / "run" / "significance" / "significance.json").read_text())["comparisons"]}
    beside = lay_beside(systems, families, open_corpus, silent)
    compared, untested = compare_evaluated(systems, beside, families, 500, silent)
    assert untested == ""
    for paper, key in ((False, "text"), (True, "text_paper")):
        table = make_headline(systems, compared, paper=paper)
        assert table.columns[-1].name == "finetune against baseline"
        assert {row[0]: row[-1] for row in table.rows} == {name: said[name][key] for name in said}
    assert any("▲" in c["text"] for c in said.values())
    for c in compared:
        value = systems[0].metrics.all_metrics()[c.metric].value
        assert value is not None
        assert abs(c.value_a - value) < 1e-12


def test_dots_are_the_bounds(systems, metrics):
    figure = draw_headline(systems)
    assert figure is not None
    names = list(figure.x.ticks)
    for series, folder in zip(figure.series, ("eval", "eval-baseline"), strict=True):
        bounds = metrics(folder)["metrics"]
        place = names.index("micro-F1")
        at = list(series.x).index(place)
        assert (series.y[at], series.bounds(at)) == (bounds["micro-F1"]["value"], (bounds["micro-F1"]["low"], bounds["micro-F1"]["high"]))


def test_what_is_not_defined_is_a_dash(systems):
    bounds = systems[0].metrics.metrics
    undefined = bounds["P@1"].model_copy(update={"value": None})
    assert show_bound(None) == show_bound(undefined) == "–"
    assert show_bound(bounds["P@1"].model_copy(update={"low": None})) == "100.0"
    assert list(draw_bounds("a", ["P@1", "none"], {"P@1": undefined}).x) == []


def test_what_was_not_trained_here_says_what_it_is(systems):
    predict = systems[0].stages["predict"]
    members = predict.model_copy(update={"summary": {"average": {"finetune": "a", "baseline": "b"}}})
    members = members.model_copy(update={"tag": "ens"})
    record = systems[0].record.model_copy(update={"tag": "ens", "inputs": {"predict-ens": "hash"}})
    average = replace(systems[0], tag="ens", record=record, stages={**systems[0].stages, "predict-ens": members})
    tool = replace(systems[0], tag="tool", record=systems[0].record.model_copy(update={"options": {"predictions": "/x/omikuji.parquet"}}))
    rows = describe_systems([average, tool]).rows
    assert [row[2] for row in rows] == ["average of finetune, baseline", "another tool (omikuji.parquet)"]


def test_one_system_is_told_what_a_second_gives(evaluate):
    [system] = evaluate()
    section = write_headline([system], make_headline([system], [], paper=False), "Nothing is compared.")
    assert section.missing == ["Nothing is compared."]
    assert [table.title for table in section.tables] == ["What is compared", "Headline"]
    row = describe_systems([system]).rows[0]
    assert row[:2] == ["finetune", 36] or row[:2] == ["run", 36]
