"""Precision against recall, and reliability, against counts by hand and the evaluation's own figures."""

from dataclasses import replace

import numpy as np
import pytest

from plant_cli.evaluation.counters import find_assigned, find_hits
from plant_cli.evaluation.results import CalibrationRecord, ReliabilityBin
from plant_cli.report.compared import lay_beside
from plant_cli.report.sections import PLACES, draw_reliability, trace_curve, write_decisions


def test_a_curve_is_what_counting_at_every_threshold_gives(make_random):
    data = make_random(1)
    recall, precision = trace_curve(data)
    found = {}
    for threshold in np.unique(data.scores)[::-1]:
        assigned = find_assigned(replace(data, threshold=float(threshold)))
        right = (assigned & find_hits(data.top, data.gold)).sum()
        found[right / data.gold.nnz] = max(right / assigned.sum(), found.get(right / data.gold.nnz, 0.0))
    assert recall == sorted(recall)
    assert dict(zip(recall[:-1], precision[:-1], strict=True)) == pytest.approx({at: found[at] for at in recall[:-1]})
    assert (recall[-1], precision[-1]) == pytest.approx((right / data.gold.nnz, find_hits(data.top, data.gold).mean()))  # all are assigned


def test_ties_are_assigned_together(make_random):
    data = make_random(2)
    tied = replace(data, scores=np.full_like(data.scores, 0.5))
    recall, precision = trace_curve(tied)
    assert len(recall) == 1
    assert precision == [pytest.approx(find_hits(data.top, data.gold).mean())]


def test_long_curves_are_thinned_and_empty_ones_are_none(make_random):
    data = make_random(3, documents=400, labels=50, k=20)
    recall, _ = trace_curve(data)
    assert 100 < len(recall) <= PLACES
    assert recall[-1] == pytest.approx(find_hits(data.top, data.gold).sum() / data.gold.nnz)
    assert trace_curve(replace(data, top=np.full_like(data.top, -1), scores=np.full_like(data.scores, -np.inf))) == ([], [])
    assert trace_curve(replace(data, gold=data.gold * 0)) == ([], [])


def test_the_point_of_the_threshold_lies_on_the_curve(systems, families, open_corpus, silent, metrics):
    beside = lay_beside(systems, families, open_corpus, silent)
    for system, folder in zip(systems, ("eval", "eval-baseline"), strict=True):
        recall, precision = trace_curve(beside.data[system.name])
        point = [metrics(folder)["metrics"][name]["value"] for name in ("micro-recall", "micro-precision")]
        assert min(abs(r - point[0]) + abs(p - point[1]) for r, p in zip(recall, precision, strict=True)) < 1e-12


def test_reliability_is_the_recorded_one(systems, metrics):
    recorded = metrics()["calibration"]
    figure = draw_reliability(systems[:1])
    filled = [one for one in recorded["bins"] if one["pairs"]]
    assert list(figure.series[0].x) == [one["probability"] for one in filled]
    assert list(figure.series[0].y) == [one["right"] for one in filled]
    assert [figure.series[0].bounds(i) for i in range(len(filled))] == [(one["low"], one["high"]) for one in filled]
    assert f"ECE of finetune {100 * recorded['ECE']:.2g} [" in figure.notes[0]
    assert figure.series[0].name == f"finetune (ECE {100 * recorded['ECE']:.2g})"


def test_the_network_alone_stands_beside_the_whole(systems):
    network = CalibrationRecord(ECE=0.25, bins=[ReliabilityBin(pairs=4, probability=0.5, right=0.25)])
    metrics = systems[0].metrics.model_copy(update={"calibration_network": network})
    figure = draw_reliability([replace(systems[0], metrics=metrics)])
    assert figure.series[1].name == "finetune, network alone (ECE 25)"
    assert figure.series[1].bounds(0) is None


def test_empty_bins_are_not_drawn(systems):
    bins = [ReliabilityBin(pairs=0, probability=0, right=0), ReliabilityBin(pairs=4, probability=0.5, right=0.25)]
    metrics = systems[0].metrics.model_copy(update={"calibration": CalibrationRecord(ECE=0.25, bins=bins)})
    figure = draw_reliability([replace(systems[0], metrics=metrics)])
    assert (list(figure.series[0].x), list(figure.series[0].y)) == ([0.5], [0.25])


def test_what_cannot_be_drawn_is_said(systems):
    bare = [replace(system, metrics=system.metrics.model_copy(update={"calibration": None})) for system in systems]
    section = write_decisions(bare, {}, "the predictions are gone; `plant predict`.")
    assert list(section.figures) == []
    assert section.missing[0] == "Precision against recall is left out: the predictions are gone; `plant predict`."
    assert "`plant eval --tag baseline --force` measures it" in section.missing[2]
