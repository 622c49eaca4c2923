"""Choosing the strategy that the launch configuration (`accelerate config`) asks for."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Literal

from accelerate import Accelerator

from plant_cli.api import ComponentError, Reporter, UsageError
from plant_cli.parallel.environment import process_count, was_launched
from plant_cli.parallel.strategies.data_parallel import DataParallel
from plant_cli.parallel.strategies.strategy import Strategy, Trainable


def sharing_mode() -> Literal["whole", "fsdp", "deepspeed"]:
    """What `distributed_type` asks for: a whole network in every process, a sharded one (FSDP), or DeepSpeed's engine.

    Raises:
        ComponentError: DeepSpeed is not installed.
    """
    if was_launched() and os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        if find_spec("deepspeed") is None:
            raise ComponentError(
                "the launch configuration asks for DeepSpeed, which is not installed",
                where="distributed_type: DEEPSPEED",
                expected="the package deepspeed in this environment",
                todo="pip install deepspeed, or distributed_type: FSDP, which needs no further package",
            )
        return "deepspeed"
    return "fsdp" if process_count() > 1 and os.environ.get("ACCELERATE_USE_FSDP") == "true" else "whole"


def refuse_unsupported(accelerator: Accelerator) -> None:
    """Refuse a launch configuration that cannot be followed, before there is work to lose.

    Raises:
        UsageError: it asks DeepSpeed for a ZeRO stage or an optimiser that is not supported.
    """
    if sharing_mode() == "deepspeed":
        from plant_cli.parallel.strategies.deepspeed import refuse_configuration

        refuse_configuration(accelerator.state.deepspeed_plugin.deepspeed_config)


def choose_strategy(trained: Trainable, accelerator: Accelerator, reporter: Reporter) -> Strategy:
    """The strategy that was asked for; a note says what is sharded.

    Raises:
        UsageError: the optimiser continues from sparse updates, which need whole label tables.
    """
    asked, count = sharing_mode(), trained.processes.count
    if asked == "whole":
        return DataParallel(trained)
    if any(values["step"].numel() > 1 for values in trained.optimizer.state.values()):
        raise UsageError(
            "the checkpoint comes from sparse updates, which need whole label tables in every process",
            where=f"distributed_type: {asked.upper()}",
            expected="a checkpoint of a run with --no-sparse-updates",
            todo="--resume under distributed_type: MULTI_GPU, or train again with --no-sparse-updates --force",
        )
    if asked == "fsdp":
        from plant_cli.parallel.strategies.fsdp import FullySharded

        reporter.note(f"backbone and label tables are sharded over {count} processes")
        return FullySharded(trained)
    from plant_cli.parallel.strategies.deepspeed import DeepSpeedZero

    reporter.note(f"DeepSpeed steps the optimiser (processes: {count})")
    return DeepSpeedZero(trained, accelerator)
