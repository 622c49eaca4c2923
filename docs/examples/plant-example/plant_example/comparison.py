"""The action `try-signals`: a stage of `plant` run several times, as any action may do with the runner that its context offers."""

from __future__ import annotations

from dataclasses import replace

from plant_cli.api import Column, Options, Result, SignalSpec, StageContext, StageSpec, Table, option


class TrySignalsOptions(Options):
    """Options of `plant try-signals`."""

    signal: list[str] = option([], "A signal to try (repeatable; default: every installed one).")
    k: int = option(5, "Words kept for each label, at most.", ge=1)


def run(context: StageContext, options: TrySignalsOptions) -> Result:
    """Run `plant mig` once with each signal, as `mig-NAME` in the run folder."""
    names = options.signal or [spec.name for spec in context.components(SignalSpec)]
    rows = []
    for name in names:
        request = replace(context.request, flags={**context.request.flags, "mig": {"signal": name, "k": options.k}})
        found = context.runner.run_stage(request, "mig", tag=name)
        rows.append((name, found.summary["kept"]))
    columns = (Column(name="signal"), Column(name="pairs kept", kind="count"))
    return Result(
        tables=[Table(title="Signals", columns=columns, rows=rows)], next_step="plant pretrain-attn --tag NAME plants the words of one"
    )


SPEC = StageSpec(
    name="try-signals",
    summary="Find the words of each label by several signals.",
    options=TrySignalsOptions,
    run=run,
    sections=("data", "machine"),
    writes=False,
    takes=("force", "resume"),
    group="Corpus",
    examples=("plant try-signals --signal mig --signal npmi --dataset weather",),
)
