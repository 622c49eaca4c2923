"""What was found is shown, and says what does not fit."""

from __future__ import annotations

from plant_cli.training.planner import report
from plant_cli.training.planning import Change, Estimate, Part

PARTS = (Part(name="backbone", parameters=10, trained=5, size=4 * 10**9),)


def make(peak: int, **values: object) -> Estimate:
    given = {"disk": {"cache": 0}, "work": {"epochs": 3, "padding": 0.25, "operations": 2e12}, "seconds": 7200.0, "measured": False}
    return Estimate(memory={"weights": peak}, **(given | values))  # type: ignore[arg-type]


def test_stages_stand_side_by_side_and_what_none_needs_is_left_out() -> None:
    found = report(
        {"pretrain-attn": make(10**9, parts=PARTS), "finetune": make(2 * 10**9, parts=PARTS, measured=True)}, 10**10, "cpu", ["so"]
    )
    parts, taken = found.tables
    assert parts.rows == [["pretrain-attn, finetune", "backbone", 10, 5, "4.000"]]
    assert taken.rows == [
        ["memory: weights", "1.000", "2.000"],
        ["memory: peak", "1.000", "2.000"],
        ["epochs", "3", "3"],
        ["padding", "25%", "25%"],
        ["TFLOP", "2.000", "2.000"],
        ["hours", "≥ 2", "2"],
    ]
    assert taken.notes == ["10.0 GB are free for each process", "so"]
    assert (found.data["finetune"]["peak_bytes"], found.data["finetune"]["hours"]) == (2 * 10**9, 2.0)
    assert found.next_step is not None


def test_what_does_not_fit_comes_with_what_helps() -> None:
    changed = make(2 * 10**9, changes=[Change(options="--micro-batch 2", peak=10**9)])
    found = report({"finetune": changed, "predict": make(3 * 10**9)}, 15 * 10**8, "cpu", [])
    assert found.tables[-1].notes[1:] == [
        "finetune does not fit: --micro-batch 2 (then 1.0 GB)",
        "predict does not fit: no option helps; a smaller backbone or a larger machine does",
    ]
    assert found.next_step is None
