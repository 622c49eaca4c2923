"""`plant train DATA`: a model of one's own data by one command. Scorers first, then a network
while time is left.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plant_cli.api import (
    Column,
    ColumnQuestion,
    Interrupted,
    PlantError,
    Result,
    SilentReporter,
    StageContext,
    Table,
)
from plant_cli.api.network_packages import find_missing_packages, missing_packages
from plant_cli.commands.command_options import TrainOptions
from plant_cli.commands.run import read_by_language
from plant_cli.data.corpus_files import CorpusRecord
from plant_cli.data.loading import guess_columns
from plant_cli.data.records import StageRecord
from plant_cli.evaluation.results import read_metrics
from plant_cli.runs.changes import refuse_changed_sources
from plant_cli.runs.folder import HEADER_NAME, RUN_RECIPE, VALIDATION_FILE, Run, StageFolder
from plant_cli.scoring.decisions import THRESHOLDS, Bands
from plant_cli.scoring.predictions import ALL_PARTS
from plant_cli.training.fit_reports import describe_gain
from plant_cli.training.judging import Gain

_STEPS = "recommended"
_SHOWN = ("P@1", "P@5", "PSP@5", "R@10", "R@10[1-5]")  # of each part
_MEANING = (
    "P@1: how often the first label is right; R@10: the share of a document's labels among its "
    "first ten; PSP@5: as P@5, with more weight "
    "for rare labels; [1-5]: labels of one to five training documents"
)
_NEXT = "plant suggest --text '…' --why; plant report; plant serve"
_HOUR = 3600.0  # seconds


def run(context: StageContext, options: TrainOptions) -> Result:
    """Fit scorers, train a network while time is left if the user gives it time, and measure
    the model.
    """
    if options.hours is not None and (absent := find_missing_packages()):
        raise missing_packages(absent, "--hours")
    training = Training(
        context, None if options.hours is None else time.monotonic() + _HOUR * options.hours
    )
    try:
        return training.run()
    except Interrupted as error:
        ready = training.model is not None
        raise Interrupted(
            error.what,
            where=error.where,
            expected="all steps of `plant train`",
            todo="the same command goes on where it stopped"
            + ("; `plant suggest` uses the model that is finished" if ready else ""),
        ) from error


@dataclass
class Training:
    """The steps of `plant train`, which are those of the recipe `recommended` in the same run."""

    context: StageContext
    deadline: float | None  # of the monotonic clock; None: no network is asked for

    def run(self) -> Result:
        """Take all steps that are not finished."""
        request = self.context.request
        flags = {
            section: dict(given) for section, given in request.flags.items() if section != "train"
        }
        if not (self.context.run_path / RUN_RECIPE).exists():
            flags["data"] = {**_find_columns(self.context), **flags.get("data", {})}
        self.request = replace(
            request,
            recipe=request.recipe or _STEPS,
            resume=True,
            flags=flags,
            deadline=self.deadline,
            show_documents=True,
        )
        path = self.context.run_path
        if (path / HEADER_NAME).exists() and not request.grow:
            refuse_changed_sources(Run.open(path))
        parts: Sequence[Table] = ()
        if not self._networked():
            parts = self._step("finetune", {"network": False}).tables
            self.context.reporter.note(
                "the scorers are ready: `plant suggest` uses them from now on"
            )
        asked = self.deadline is not None or self._networked()
        notes = list(self._train_network()) if asked else [self._offer_network()]
        return self._report(notes, parts)

    @property
    def model(self) -> StageRecord | None:
        """The record of the model that `plant suggest` uses; None if there is none."""
        return StageFolder(self.context.run_path / "finetune").usable().finished()

    def _networked(self) -> bool:
        """Whether the network of the run is finished, or its training was begun."""
        record = StageFolder(self.context.run_path / "finetune").last_record()
        return record is not None and bool(record.options.get("network"))

    def _step(
        self,
        stage: str,
        options: dict[str, Any] | None = None,
        *,
        replaces: bool = False,
        **changes: Any,
    ) -> Result:
        """Run one stage of the recipe, or go on with it; it is skipped if it is finished and
        unchanged.
        """
        flags = {**self.request.flags, stage: options or {}}
        request = replace(
            self.request, flags=flags, force=self.request.force or replaces, **changes
        )
        return self.context.runner.run_stage(request, stage)

    def _train_network(self) -> Iterator[str]:
        """Plant and train a network while time is left; notes say what it adds."""
        if StageFolder(self.context.run_path / "pretrain-attn").last_record() is None:
            self.request, why = read_by_language(self.context, self.request)
            yield from filter(None, [why])
        self._step("mig")
        left = None if self.deadline is None else self.deadline - time.monotonic()
        first = self._forecast() if left is not None and not self._networked() else None
        if left is not None and first is not None and first > left:
            yield (
                f"no network: it would take about {show_time(first)}, and "
                f"{show_time(left)} are left of --hours"
            )
            return
        self._step("pretrain-attn", deadline=None if left is None else time.monotonic() + left / 2)
        self._step("finetune", replaces=not self._networked())
        record = self.model
        gain = record.summary.get("gain_of_network") if record is not None else None
        if record is not None and gain is not None:
            yield describe_gain(Gain(**gain), left_out=record.summary["network_left_out"])

    def _offer_network(self) -> str:
        given = self.context.request.flags.get("data", {}).get("path")
        path = shlex.quote(str(given or self.context.data.path))
        return (
            f"a network may add to this: `plant train {path} --hours 1` trains one, "
            "and keeps it if validation says that it adds"
        )

    def _forecast(self) -> float | None:
        """Seconds until a network is ready, or its first epoch ends; None if that cannot be
        said.
        """
        flags = {**self.request.flags, "finetune": {"network": True}}
        request = replace(
            self.request, recipe=None, flags=flags, resume=False, reporter=SilentReporter()
        )
        try:
            plans = self.context.runner.run_stage(request, "plan").data
            planted, tuned = (plans[stage]["seconds"] for stage in ("pretrain-attn", "finetune"))
            if StageFolder(self.context.run_path / "pretrain-attn").is_done():
                planted = 0.0
            return float(planted / 2 + tuned / max(1, plans["finetune"]["work"].get("epochs", 1)))
        except (PlantError, KeyError, TypeError):  # no measure of a step on this machine
            return None

    def _report(self, notes: list[str], parts: Sequence[Table]) -> Result:
        """The model on test; without a test split on validation, where `parts` are known."""
        sizes = CorpusRecord.read(self.context.run_path / "corpus").sizes
        split = next((name for name in ("test", "validation") if name in sizes), None)
        if split is None:
            return Result(
                tables=[
                    Table(title="Trained", columns=[Column(name="split")], rows=[], notes=notes)
                ],
                next_step=_NEXT,
            )
        options: dict[str, Any] = {"split": split}
        if split == "validation":  # scored already, by weights of the other folds
            folder = self.context.run_path / "finetune"
            options["predictions"] = str(folder / VALIDATION_FILE)
            options["thresholds"] = str(folder / THRESHOLDS)
        self._step("eval", options, replaces=True)
        found = read_metrics(self.context.run_path / "eval")
        rows = [
            [name, *(getattr(metrics.get(one), "value", None) for one in _SHOWN)]
            for name, metrics in {**found.parts, ALL_PARTS: found.all_metrics()}.items()
        ]
        whole = found.metrics.get("MAP")
        record = self.model
        if record is not None and "bands" in record.summary:
            notes.insert(0, f"bands: {Bands(**record.summary['bands']).describe()}")
        notes.insert(0, f"{found.documents:,} documents of {split}, which training did not see")
        if whole is not None and whole.low is not None:
            bounds = (
                f"{100 * (whole.value or 0.0):.1f} [{100 * whole.low:.1f}, "
                f"{100 * (whole.high or 0.0):.1f}]"
            )
            notes[0] += f"; MAP of all together {bounds}, 95% interval over documents"
        if split == "validation":
            notes[0] = (
                f"{found.documents:,} documents of validation, since there is no test split: each "
                "by weights that others of them chose, thresholds by all of them"
            )
        table = Table(
            title=f"The model and its parts ({split})",
            columns=[Column(name="part"), *(Column(name=name, kind="points") for name in _SHOWN)],
            rows=rows,
            notes=[*notes, _MEANING],
        )
        tables = [table] if split == "test" else [*parts, table]
        return Result(tables=tables, data=found.model_dump(mode="json"), next_step=_NEXT)


def _find_columns(context: StageContext) -> dict[str, str]:
    """Columns by their names and contents; a person at the terminal says which of several is
    meant.
    """
    answers: dict[str, str] = {}
    while True:
        try:
            data = context.data.model_copy(update=answers)
            return {**guess_columns(context, data), **answers}
        except ColumnQuestion as question:
            if question.option in answers or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            answers[question.option] = _ask(question)


def _ask(question: ColumnQuestion) -> str:
    """The column that a person chooses by its number; the question as an error if they choose
    none.
    """
    names = list(question.choices)
    listed = (
        f"  {number}  {name}: {', '.join(question.choices[name])}"
        for number, name in enumerate(names, start=1)
    )
    print(question.what.partition(":")[0] + ":", *listed, sep="\n", file=sys.stderr)
    print(f"Which one? 1 to {len(names)}: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if answer in names:
        return answer
    if not answer.isdecimal() or not 1 <= int(answer) <= len(names):
        raise question
    return names[int(answer) - 1]


def show_time(seconds: float) -> str:
    """A time for people: `40 seconds`, `12 minutes`, `3.5 hours`."""
    if seconds < 90:
        return f"{max(0, round(seconds))} seconds"
    return (
        f"{seconds / 60:.0f} minutes" if seconds < 1.5 * _HOUR else f"{seconds / _HOUR:.1f} hours"
    )
