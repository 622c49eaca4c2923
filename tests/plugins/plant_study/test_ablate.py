from __future__ import annotations

import pytest
from builders import run_at, write_documents
from laboratory import CLINIC

from plant_cli.api import PlantError, UsageError
from plant_cli.data.files import read_json
from plant_cli.scoring.opened_models import open_model

SCORERS = "finetune: {network: false, scorers: [words, titles]}\n"
CHANGES = (
    "changes:\n  words alone: {finetune: {scorers: [words]}}\n  titles alone: {finetune: "
    "{scorers: [titles]}}\n"
)


@pytest.fixture
def ablate(tmp_path):
    """Run `plant ablate` on a small made-up clinic with a recipe of this text."""

    def run(text, *, resume=False, **options):
        (tmp_path / "r.yaml").write_text(text)
        flags = {"ablate": {"recipe": str(tmp_path / "r.yaml"), **options}}
        return run_at(tmp_path / "run", "ablate", CLINIC[0], flags=flags, resume=resume).tables

    return run


def test_all_systems_are_in_one_table_and_nothing_is_trained_twice(ablate):
    table, steps = ablate(
        "mig: {}\n" + SCORERS + CHANGES,
        change=["two changes: finetune.scorers=[titles, words], mig.k=5"],
    )
    assert [row[0] for row in table.rows] == ["full", "words alone", "titles alone", "two changes"]
    assert [column.name for column in table.columns[:3]] == ["system", "P@1", "P@5"]
    assert [row[0] for row in steps.rows][-3:] == [
        "mig-two-changes",
        "finetune-two-changes",
        "significance",
    ]
    again = ablate("mig: {}\n" + SCORERS + CHANGES)
    assert [row[0] for row in again[0].rows] == ["full", "words alone", "titles alone"]
    assert {row[0]: row[1] for row in again[1].rows if row[0] != "significance"} == dict.fromkeys(
        ("mig", "finetune", "finetune-words-alone", "finetune-titles-alone"), "unchanged"
    )


def test_another_comparison_of_a_shared_run_is_made_anew_also_on_resuming(ablate):
    ablate("mig: {}\n" + SCORERS + CHANGES)
    table, _ = ablate(
        "mig: {}\n" + SCORERS + "changes:\n  titles alone: {finetune: {scorers: [titles]}}\n",
        resume=True,
    )
    assert [row[0] for row in table.rows] == ["full", "titles alone"]


def test_a_change_takes_training_documents_away(ablate, tmp_path):
    table, steps = ablate("mig: {}\n" + SCORERS, change=["few: data.train_share=0.5"])
    assert [row[0] for row in table.rows] == ["full", "few"]
    assert [row[0] for row in steps.rows] == [
        "mig",
        "finetune",
        "mig-few",
        "finetune-few",
        "significance",
    ]
    run, shown = tmp_path / "run", {row[0]: row[3] for row in steps.rows}
    assert ("documents 90," in shown["mig"], "documents 45," in shown["mig-few"]) == (True, True)
    counts, known = (
        [*one.combination.train_counts]
        for one in (open_model(run, tag="few").model, open_model(run).model)
    )
    assert counts == read_json(run / "finetune-few" / "scorers.json", "the scorers")["train_counts"]
    assert 0 < sum(counts) < sum(known)
    assert len(counts) == len(known)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ([], "names no changes"),
        (["one head"], "'one head' is no change"),
        (["a.b: finetune.epochs=3"], "is no change"),
        (["k=3: mig.k=3"], "is no change"),
    ],
)
def test_what_is_no_change_is_refused(ablate, tmp_path, change, says):
    with pytest.raises(UsageError, match=says):
        ablate("mig: {}\n" + SCORERS, change=change)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "titles: {model: {label_queries: titles}}",
            "no label has a title that its query could start from",
        ),
        ("two levels: {model: {decoder: joint-laat}}", "the labels of the corpus have no parents"),
    ],
)
def test_what_the_network_of_a_change_lacks_is_told_before_anything_trains(change, says, tmp_path):
    corpus = write_documents(
        tmp_path / "d.parquet",
        *((split, f"text {split}", ["a"]) for split in ("train", "validation", "test")),
    )
    (tmp_path / "r.yaml").write_text(f"mig: {{}}\nfinetune: {{}}\nchanges:\n  {change}\n")
    with pytest.raises(PlantError, match=says):
        run_at(
            tmp_path / "run",
            "ablate",
            f"data.path={corpus}",
            flags={"ablate": {"recipe": str(tmp_path / "r.yaml")}},
        )
    assert not list((tmp_path / "run").glob("*/stage.json"))


TUNED = (
    SCORERS
    + "changes:\n  frequencies: {finetune: {scorers: [frequencies]}}\n"
    + "tune: {over: {mig: {k: [5, 50]}, finetune: {epochs: [1, 2]}}}\n"
)


def test_all_systems_are_tuned_by_the_same_trials_and_test_is_read_at_the_end(ablate, tmp_path):
    tuned, table, steps = ablate("mig: {}\n" + TUNED)
    run = tmp_path / "run"
    assert [row[:3] for row in tuned.rows] == [
        ["full", 2, 0],
        ["frequencies", 2, 0],
    ]
    assert [row[0] for row in table.rows] == ["full", "frequencies"]
    assert not any(row[0] == "finetune" for row in steps.rows)  # nothing is trained untuned
    data = read_json(run / "tuning.json", "the trials")
    assert data["systems"]["full"]["chosen"].keys() == {"mig.k"}
    assert {"command", "plant", "commit", "metric", "seed"} <= data.keys()
    compared = read_json(run / "significance" / "significance.json", "the comparison")
    figures = {compared["names"][name]: one["MAP"] for name, one in compared["validation"].items()}
    assert figures == {name: one["figure"] for name, one in data["systems"].items()}
    assert 0 < compared["frequencies_on_validation"] < figures["full"]
    again = ablate("mig: {}\n" + TUNED, resume=True)
    assert {row[1] for row in again[2].rows if row[0] != "significance"} == {"unchanged"}
    best = run_at(run, "run", CLINIC[0], flags={"run": {"recipe": str(run / "tuned.yaml")}})
    assert [row[1] for row in best.tables[-1].rows][:-1] == ["unchanged"] * (len(steps.rows) - 1)


@pytest.mark.parametrize("tried", ["k: 5", "k: []"])
def test_what_gives_nothing_to_try_is_refused(ablate, tried):
    text = "mig: {}\n" + SCORERS + CHANGES + f"tune: {{over: {{mig: {{{tried}}}}}}}\n"
    with pytest.raises(PlantError, match=r"gives nothing to try for 'mig\.k'"):
        ablate(text)
