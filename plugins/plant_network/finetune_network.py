"""Stage 2 with a network. It imports torch, which `finetune` does without where there is none."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from plant_cli.api import Column, Result, StageContext, Table, UsageError
from plant_cli.api.context import with_tag
from plant_cli.data.changed_labels import read_label_edits
from plant_cli.data.files import read_json
from plant_cli.relevance.relevance_table import load_statistics
from plant_cli.relevance.weighing import RelevanceRule
from plant_cli.runs.folder import StageFolder
from plant_cli.runs.run_corpus import read_former_labels
from plant_cli.scoring.models import DESIGN_FILE
from plant_cli.training.fit_reports import (
    describe_gain,
    describe_threshold,
    list_scorers,
    tabulate_parts,
    tell_calibration,
)
from plant_cli.training.judging import NETWORK_METRICS, VALIDATION_METRICS
from plant_cli.training.training_options import FinetuneOptions
from plant_network.assembly import WEIGHTS, EarlierNetwork
from plant_network.materials import Inputs
from plant_network.stage2 import FineTuned, finetune


def run_network(context: StageContext, options: FinetuneOptions, rule: RelevanceRule) -> Result:
    """Fine-tune, keep the best epoch on validation, and tune the decision threshold there."""
    corpus, tag, seed = context.corpus(), context.tag, context.machine.seed
    find = context.input if options.needs_relevance else context.find_input
    relevance = find("mig", options.relevance)
    goes_on = options.only_new or not options.in_closed_form  # regressions are solved again
    earlier = _find_earlier(context, stays=options.only_new) if goes_on else None
    if options.only_new and earlier is None:
        raise UsageError(
            "there is no trained network that new labels could be added to",
            where="finetune, option only_new",
            expected="a run whose labels have changed since its network was trained",
            todo="plant labels apply RUN EDITS --run NEW; without --only-new a network is trained",
        )
    planted = context.input("pretrain-attn", options.planted) if options.starts_planted else None
    statistics = None if relevance is None else load_statistics(relevance, corpus)
    inputs = Inputs.of(
        context,
        statistics=statistics,
        planted=planted,
        earlier=earlier,
        rule=rule,
    )
    return _report(finetune(inputs, options), options, seed, tag)


def _find_earlier(context: StageContext, *, stays: bool) -> EarlierNetwork | None:
    """The network that is being replaced, if the corpus has grown since; None if its labels are
    not known, or none is part of the model.
    """
    folder = StageFolder(context.folder).usable().path
    if not context.request.grow or folder == context.folder or not (folder / WEIGHTS).exists():
        return None
    hashed = read_json(folder / DESIGN_FILE, "the description of the saved model").get("label_hash")
    before = read_former_labels(context.run_path, str(hashed))
    if before is None:
        return None
    row_of = {label: row for row, label in enumerate(before)}
    edits = context.data.label_edits
    # a new label that others were merged into has the row of the first
    origins = {} if edits is None else read_label_edits(Path(edits)).origins
    found = ([label, *origins.get(label, ())] for label in context.corpus().labels.ids)
    rows = np.array(
        [next((row_of[name] for name in names if name in row_of), -1) for names in found],
        dtype=np.int64,
    )
    earlier = EarlierNetwork(folder=folder, labels=len(before), rows=rows, stays=stays)
    how = "stays as it is" if stays else "goes on from its weights"
    context.reporter.note(
        f"the network {how}; {earlier.new_labels:,} of {len(rows):,} labels are new to it"
    )
    return earlier


def _report(reached: FineTuned, options: FinetuneOptions, seed: int, tag: str | None) -> Result:
    outcome, quality = reached.training, reached.quality
    recalls = [name for name in outcome.kept if name.startswith("shortlist")]
    alone = [NETWORK_METRICS[VALIDATION_METRICS[0]]] if reached.scorers else []
    shown = [*VALIDATION_METRICS, *alone, *([quality] if quality else []), *recalls]
    columns = [Column(name="epoch"), Column(name="loss", kind="exact")]
    columns += [
        Column(name=f"attention {name}" if name == quality else name, kind="points")
        for name in shown
    ]
    rows = [
        [str(e["epoch"] or "start"), e["loss"], *(e[name] for name in shown)]
        for e in outcome.history
    ]
    conditions = f"{reached.conditions}; seed {seed}"
    notes = [
        f"kept: {outcome.kept_epoch} by {options.monitor}; "
        f"{describe_threshold(reached.threshold, options, 'validation')}",
        f"bands: {reached.bands.describe()}",
        tell_calibration(reached.calibrated),
        *([] if reached.gain is None else [describe_gain(reached.gain, left_out=reached.left_out)]),
        conditions,
        *([reached.speed.note] if outcome.epochs else []),
    ]
    tables = [Table(title="Fine-tuning (validation)", columns=columns, rows=rows, notes=notes)]
    figures = {name: reached.figures.get(name, outcome.kept[name]) for name in shown}
    if reached.parts:
        tables.append(
            tabulate_parts(
                "Each part alone (validation)",
                reached.parts,
                {name: figures[name] for name in VALIDATION_METRICS},
                [conditions],
            )
        )
    return Result(
        tables=tables,
        next_step=f"{with_tag('plant eval', tag)} --bootstrap 1000",
        summary={
            **figures,
            "scorers": list_scorers(reached.scorers),
            "ECE": reached.calibrated.reliability.error,
            **(
                {}
                if reached.gain is None
                else {"gain_of_network": asdict(reached.gain), "network_left_out": reached.left_out}
            ),
            "sharpness": outcome.history[0].get("sharpness", 1.0),
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch + 1,
            "threshold": reached.threshold,
            "bands": asdict(reached.bands),
            **reached.speed.summary(),
            **reached.cuts,
        },
    )
