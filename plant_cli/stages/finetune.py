"""Stage 2, `plant finetune`: train the whole network to assign labels, from planted or from random attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plant_cli.api import BackboneSpec, Column, Result, StageContext, StageSpec, Table, UsageError
from plant_cli.model.design import find_design
from plant_cli.running.session import open_session
from plant_cli.training.options import FinetuneOptions

if TYPE_CHECKING:
    from plant_cli.training.stage2 import FineTuned

FIGURES = ("MAP", "P@5", "micro-F1", "macro-F1")


def run(context: StageContext, options: FinetuneOptions) -> Result:
    """Fine-tune, keep the best epoch on validation, and tune the decision threshold there."""
    _refuse_useless_sharpness(options)
    corpus = context.corpus()
    relevance = context.input("mig") if options.needs_relevance else context.find_input("mig")
    planted = context.input("pretrain-attn") if options.init == "planted" else None

    # Imports torch, which takes seconds: what is missing is said before.
    from plant_cli.model.languages import warn_of_languages
    from plant_cli.model.word_statistics import load_statistics
    from plant_cli.training.materials import Inputs
    from plant_cli.training.stage2 import finetune

    given = Inputs(
        corpus=corpus,
        design=find_design(context.model, context.component).start_from(context.input),
        machine=context.machine,
        session=open_session(context),
        component=context.component,
        statistics=None if relevance is None else load_statistics(relevance, corpus),
        planted=planted,
    )
    warn_of_languages(given.design, context.components(BackboneSpec), corpus.split("train").texts, context.reporter)
    return _report(finetune(given, options), options)


def _refuse_useless_sharpness(options: FinetuneOptions) -> None:
    if options.sharpness is not None and not options.plants_tables:
        raise UsageError(
            "a sharpness is given, but label tables do not start from prototypes",
            where="finetune, option sharpness",
            expected="--prototypes, which --init planted has by default",
            todo="leave --sharpness out, or add --prototypes",
        )


def _report(reached: FineTuned, options: FinetuneOptions) -> Result:
    outcome, quality, lexical = reached.training, reached.quality, reached.lexical_figures
    recalls = [name for name in outcome.kept if name.startswith("shortlist")]
    shown = [*FIGURES, *([quality] if quality else []), *recalls]
    columns = [Column(name="epoch"), Column(name="loss", kind="exact")]
    columns += [Column(name=f"attention {name}" if name == quality else name, kind="points") for name in shown]
    rows = [[str(e["epoch"] or "start"), e["loss"], *(e[name] for name in shown)] for e in outcome.history]
    kept = "start" if outcome.best_epoch < 0 else f"epoch {outcome.best_epoch + 1}"
    notes = [f"kept: {kept} by {options.monitor}; {_describe_threshold(reached.threshold, options)}"]
    if lexical:
        rows.append(["+ words", None, *(lexical.get(name) for name in shown)])
        notes.append(f"+ words: with lexical scores; a cosine of 1 adds {reached.lexical_weight:g} to a logit (the best on validation)")
    return Result(
        tables=[Table(title="Fine-tuning (validation)", columns=columns, rows=rows, notes=[*notes, *reached.speed.notes()])],
        next_step="plant eval --bootstrap 1000",
        summary={
            **{name: outcome.kept[name] for name in shown},
            **{f"{name} with words": value for name, value in lexical.items()},
            "sharpness": outcome.history[0].get("sharpness", 1.0),
            "word_weight": reached.lexical_weight,
            "epochs": outcome.epochs,
            "best_epoch": outcome.best_epoch + 1,
            "threshold": reached.threshold,
            **reached.speed.summary(),
            **reached.cuts,
        },
    )


def _describe_threshold(threshold: float, options: FinetuneOptions) -> str:
    if options.tune != "per-label":
        return f"threshold {threshold:.3g} tuned on validation {options.tune}"
    return (
        f"one threshold for each label tuned on validation; {threshold:.3g} (the best for macro-F1) for labels without a validation "
        "document among those scored highest"
    )


SPECS = (
    StageSpec(
        name="finetune",
        summary="Stage 2: train the network to assign labels, from planted attention or, for comparison, from random.",
        options=FinetuneOptions,
        source="PLANT, stage 2",
        run=run,
        sections=("data", "model", "machine"),
        parallel=True,
        seeded=True,
        examples=("plant finetune", "plant finetune --init random --tag baseline"),
    ),
)
