"""DeepSpeed as accelerate configures it (ZeRO stages 1 and 2): each process keeps a share of the optimiser's state, and of gradients."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from types import SimpleNamespace
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from plant_cli.api import UsageError
from plant_cli.parallel.strategies.strategy import Trainable

MOMENTS = ("exp_avg", "exp_avg_sq")
OURS = ("optimizer", "scheduler")
"""Sections of DeepSpeed's configuration that say what options of the stage say."""


class DeepSpeedZero:
    """DeepSpeed's engine steps the optimiser (`Strategy`).

    Micro-batches, schedule, clipping and number format come from the stage's options; ZeRO stage, offload and communication from
    DeepSpeed's configuration. Every process holds whole parameters. The engine is given only those that are trained.

    Args:
        trained: its optimiser will hold the share of this process of each group, as one tensor.
        accelerator: made under the launch configuration.
    """

    lockstep = True

    def __init__(self, trained: Trainable, accelerator: Accelerator) -> None:
        accelerator.state.deepspeed_plugin.deepspeed_config.update(_ours(trained))
        self.groups = trained.groups
        self.processes = trained.processes
        self.optimizer = optimizer = trained.optimizer
        self._layout = optimizer.state_dict()["param_groups"]
        self._members = [list(entry["params"]) for entry in optimizer.param_groups]
        learned = {p: optimizer.state.pop(p) for members in self._members for p in members if p in optimizer.state}
        with redirect_stdout(sys.stderr):  # where its log belongs
            self.engine, _ = accelerator.prepare(_TrainedParameters(trained), optimizer)
        self._share(learned)

    def _share(self, learned: dict[nn.Parameter, dict[str, Tensor]]) -> None:
        """Give the share of each group its part of the optimiser state so far."""
        from deepspeed.utils import lazy_init_hp_params_optimizer_state, safe_set_full_optimizer_state

        for entry, members in zip(self.optimizer.param_groups, self._members, strict=True):
            (share,) = entry["params"]
            steps = max((float(learned[p]["step"]) for p in members if p in learned), default=0.0)
            self.optimizer.state[share] = {
                "step": torch.tensor(steps, dtype=torch.float32, device=share.device),
                **{key: torch.zeros_like(share) for key in MOMENTS},
            }
            lazy_init_hp_params_optimizer_state(members, share, self.optimizer.state)
            for parameter in members:
                for key in MOMENTS if parameter in learned else ():
                    safe_set_full_optimizer_state(parameter, learned[parameter][key], key)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """See `Strategy.backward`."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss)

    def step(self, weight: float) -> None:
        """See `Strategy.step`; the engine divides the sums by its loss scale, then clips."""
        if not weight:
            for entry in self.optimizer.param_groups:
                entry["lr"] = 0.0  # all rest, the engine forgets what it has gathered
        self.engine.optimizer.loss_scale = (weight or 1.0) / self.processes.count
        self.engine.step()
        self.engine.optimizer.loss_scale = 1.0

    def state(self, *, keep: bool) -> dict[str, Any]:
        """See `Strategy.state`."""
        from deepspeed.utils import safe_get_full_optimizer_state

        found: dict[int, dict[str, Tensor]] = {}
        for entry, layout, members in zip(self.optimizer.param_groups, self._layout, self._members, strict=True):
            steps = self.optimizer.state[entry["params"][0]]["step"].cpu()
            for number, parameter in zip(layout["params"], members, strict=True) if steps else ():
                moments = {key: safe_get_full_optimizer_state(parameter, key) for key in MOMENTS}
                found[number] = {"step": steps.clone(), **{key: value.cpu() for key, value in moments.items()}} if keep else {}
        return {"state": found, "param_groups": self._layout} if keep else {}

    def gathered(self) -> AbstractContextManager[None]:
        """See `Strategy.gathered`: nothing to do, parameters are whole."""
        return nullcontext()

    def end(self) -> None:
        """See `Strategy.end`: parameters get their own memory back."""
        self.engine.destroy()
        for members in self._members:
            for parameter in members:
                parameter.data = parameter.data.clone()


class _TrainedParameters(nn.Module):
    """The parameters that are trained: all that the engine needs of the network."""

    def __init__(self, trained: Trainable) -> None:
        super().__init__()
        self.trained = nn.ParameterList(p for group in trained.groups for p in group)
        self.config: Any = SimpleNamespace(hidden_size=trained.hidden_size)  # measures buckets set to auto


def _ours(trained: Trainable) -> dict[str, Any]:
    """Settings that the stage has declared already; one step of the engine is one step of the loop."""
    return {
        "gradient_clipping": trained.clip,
        "gradient_accumulation_steps": 1,
        "train_micro_batch_size_per_gpu": 1,
        "train_batch_size": trained.processes.count,
        "bf16": {"enabled": False},  # products run in bf16 as --precision says, weights stay in fp32
        "fp16": {"enabled": False},
        "zero_force_ds_cpu_optimizer": False,
    }


def refuse_configuration(config: dict[str, Any]) -> None:
    """Refuse a configuration that is not supported.

    Args:
        config: DeepSpeed's, as accelerate has made it of the launch configuration.

    Raises:
        UsageError: it asks for a ZeRO stage other than 1 and 2, or brings its own optimiser or schedule.
    """
    stage = config.get("zero_optimization", {}).get("stage", 0)
    if stage not in (1, 2):
        raise UsageError(
            f"DeepSpeed cannot train here with ZeRO stage {stage}",
            where="the launch configuration, zero_stage",
            expected="1 (the optimiser's state is shared) or 2 (gradients, too)",
            todo="zero_stage: 2; to share the parameters themselves, distributed_type: FSDP",
        )
    doubled = [name for name in OURS if name in config]
    if doubled:
        raise UsageError(
            f"DeepSpeed's configuration names its own {' and '.join(doubled)}",
            where="the launch configuration, deepspeed_config_file",
            expected="a configuration without them: the stage's options say how fast parameters learn",
            todo=f"remove {' and '.join(doubled)} from that file",
        )
