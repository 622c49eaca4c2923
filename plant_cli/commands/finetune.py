"""Stage 2, `plant finetune`: train the network to assign labels, or fit scorers without a
network.
"""

from __future__ import annotations

from dataclasses import asdict

from plant_cli.api import Result, StageContext
from plant_cli.api.context import with_tag
from plant_cli.runs.folder import StageFolder
from plant_cli.runs.networks import find_networks
from plant_cli.runs.session import open_session
from plant_cli.scoring.excluded_labels import find_excluded
from plant_cli.scoring.models import has_network
from plant_cli.training.fit_reports import (
    describe_threshold,
    list_scorers,
    tabulate_parts,
    tell_calibration,
)
from plant_cli.training.scorers_alone import AloneResult, StageInputs, find_rule, finetune_scorers
from plant_cli.training.training_options import FinetuneOptions


def run(context: StageContext, options: FinetuneOptions) -> Result:
    """Fine-tune, keep the best epoch on validation, and tune the decision threshold there; or
    fit scorers alone.
    """
    corpus, tag, seed = context.corpus(), context.tag, context.machine.seed
    find_excluded(
        options.exclude, corpus.labels
    )  # a name that no label has is told before hours of training
    before = StageFolder(context.folder).usable()
    scorers_alone = before.is_done() and not has_network(
        before.path
    )  # as where the network did not add to them
    if not options.network or (options.only_new and scorers_alone):
        stage = StageInputs(
            corpus=corpus,
            machine=context.machine,
            session=open_session(context),
            component=context.component,
            rule=find_rule(context, options),
        )
        return _report_scorers(finetune_scorers(stage, options), options, seed, tag)
    networks = find_networks(context.request.registry)
    return networks.train(context, options, find_rule(context, options))


def _report_scorers(
    reached: AloneResult, options: FinetuneOptions, seed: int, tag: str | None
) -> Result:
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in reached.fit.seconds.items())
    threshold = describe_threshold(reached.threshold, options, reached.split)
    notes = [
        threshold,
        f"bands: {reached.bands.describe()}",
        tell_calibration(reached.calibrated),
        f"fitted: {seconds}",
    ]
    if reached.split == "train":
        notes.append(
            "there is no validation split: figures and threshold are of left-out scores of train"
        )
    notes += [f"left out: {name} ({why})" for name, why in reached.fit.missing.items()]
    notes.append(f"{reached.conditions}; seed {seed}")
    return Result(
        tables=[
            tabulate_parts(f"Scorers ({reached.split})", reached.parts, reached.figures, notes)
        ],
        next_step=f"{with_tag('plant eval', tag)} --bootstrap 1000",
        summary={
            **reached.figures,
            "scorers": list_scorers(reached.fit),
            "ECE": reached.calibrated.reliability.error,
            "threshold": reached.threshold,
            "bands": asdict(reached.bands),
        },
    )
