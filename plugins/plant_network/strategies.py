"""Training in several processes: data parallel, FSDP and DeepSpeed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from plant_cli.api import Reporter, UsageError
from plant_network.assembly import Network
from plant_network.group import SINGLE_PROCESS, Processes, gather_full
from plant_network.hardware import Hardware, sharing_mode
from plant_network.optimiser import Group, RowAdamW, touched_rows


def _values(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Values of the gradients: of a sparse one its rows, of a sharded one the shard of this
    process.
    """
    learnt = [(p, p.grad) for p in parameters if p.grad is not None]
    return [
        touched_rows(p)[1] if g.is_sparse else g.to_local() if isinstance(g, DTensor) else g
        for p, g in learnt
    ]


def add_gradients(
    processes: Processes, parameters: Sequence[nn.Parameter], tables: frozenset[int]
) -> None:
    """Replace the gradients of parameters by their sums over all processes; of a table (by id),
    the rows that any process touched.
    """
    if processes.count == 1:
        return
    dense = [p for p in parameters if not isinstance(p, DTensor) and id(p) not in tables]
    for parameter in dense:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    processes.add(parameter.grad for parameter in dense if parameter.grad is not None)
    for table in (p for p in parameters if id(p) in tables):
        table.grad = _add_rows(processes, table)


def _add_rows(processes: Processes, table: nn.Parameter) -> Tensor:
    """Rows and gradients of all processes, concatenated and summed as a sparse gradient."""
    if table.grad is None:
        none = table.new_zeros(1, 0, dtype=torch.int64), table.new_zeros(0, *table.shape[1:])
        table.grad = torch.sparse_coo_tensor(*none, table.shape, check_invariants=False)
    rows, values = touched_rows(table)
    counts = torch.tensor(processes.gather(float(len(rows))), device=table.device)
    longest = int(counts.max())
    all_rows = rows.new_zeros(processes.count, longest)
    all_values = values.new_zeros(processes.count, longest, *table.shape[1:])
    all_rows[processes.rank, : len(rows)], all_values[processes.rank, : len(rows)] = rows, values
    processes.add([all_rows, all_values])
    filled = torch.arange(longest, device=table.device) < counts[:, None]
    return torch.sparse_coo_tensor(
        all_rows[filled][None], all_values[filled], table.shape, check_invariants=False
    ).coalesce()


def clip_gradients(
    parameters: Sequence[nn.Parameter], largest: float, processes: Processes = SINGLE_PROCESS
) -> Tensor:
    """Scale all gradients, sparse and sharded ones too, to a joint norm of at most `largest`;
    the norm that they had.
    """
    spread = [p for p in parameters if isinstance(p, DTensor)]
    whole = _values([p for p in parameters if not isinstance(p, DTensor)])
    norms = list(torch._foreach_norm(whole)) if whole else []
    if spread:
        square = torch.stack(torch._foreach_norm(_values(spread))).square().sum()
        processes.add([square])
        norms.append(square.sqrt())
    norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
    scale_gradients(
        parameters, (largest / (norm + 1e-6)).clamp(max=1.0)
    )  # as torch.nn.utils.clip_grad_norm_ does it
    return norm


def scale_gradients(parameters: Sequence[nn.Parameter], factor: float | Tensor) -> None:
    """Multiply gradients, sparse and sharded ones too, by a factor."""
    if values := _values(parameters):
        torch._foreach_mul_(values, factor)


def full_state(optimizer: torch.optim.Optimizer, *, keep: bool) -> dict[str, Any]:
    """State of an optimiser with full tensors; empty unless `keep`. A collective call: every
    process must make it.
    """
    state = optimizer.state_dict()
    gathered: dict[int, dict[str, Any]] = {}
    for number, values in state[
        "state"
    ].items():  # one after the other: a device need not hold them all
        found = {
            key: gather_full(value).cpu() if keep else gather_full(value)
            for key, value in values.items()
        }
        gathered[number] = found if keep else {}
    return {**state, "state": gathered} if keep else {}


class DataParallel:
    """Every process holds the whole network; gradients are summed. Also the strategy of a single
    process, and the base of the others.

    All calls but `compute` and `backward` are collective: every process must make them.

    Attributes:
        groups: the parameters that are trained, whole or sharded.
        lockstep: whether all processes must make the same number of forward and backward passes
            between two steps; a process without work makes one of weight zero.
    """

    lockstep = False
    averaged = 1  # processes over which gradients have been averaged when a step begins

    def __init__(
        self,
        network: Network,
        hardware: Hardware,
        groups: Sequence[Group],
        optimizer: RowAdamW,
        clip: float,
    ) -> None:
        self.network, self.hardware, self.processes = network, hardware, hardware.processes
        self.groups, self.optimizer, self.clip = (
            [group.parameters for group in groups],
            optimizer,
            clip,
        )

    def compute(
        self, loss: Callable[..., tuple[Tensor, float]], *args: Any, **options: Any
    ) -> tuple[Tensor, float]:
        """The forward pass of a micro-batch: its loss and weight."""
        return loss(*args, **options)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch; `last`: the last one of this process before a
        step.
        """
        torch.autograd.backward(loss)

    def step(self, weight: float, lost: Tensor | None = None) -> Tensor | None:
        """One step with the gradients of all processes, divided by `weight` and clipped; weight 0:
        only clear the gradients.

        `lost`: the sum of the losses, where it is still on the device. If it or a gradient is no
        finite number, nothing is changed, without a word from the device; the sum comes back, or
        NaN.
        """
        if weight:
            parameters = [p for group in self.groups for p in group]
            counts = torch.tensor([float(p.grad is not None) for p in parameters])
            self.processes.add([counts])
            parameters = [
                p for p, count in zip(parameters, counts.tolist(), strict=True) if count
            ]  # with a gradient in any process
            add_gradients(self.processes, parameters, self.optimizer.tables)
            scale_gradients(parameters, self.averaged / weight)
            norm = clip_gradients(parameters, self.clip, self.processes)
            if lost is not None:
                lost = torch.where(norm.isfinite(), lost, torch.nan)
                self.optimizer.found_inf = (~lost.isfinite()).float()
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return lost

    def state(self, *, keep: bool) -> dict[str, Any]:
        """State of the optimiser over whole parameters, from which any number of processes can
        continue; empty unless `keep`.
        """
        return full_state(self.optimizer, keep=keep)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Inside: all parameters whole in every process, for reading only, without further
        communication.
        """
        yield

    def end(self) -> None:
        """Make the network's parameters whole in every process."""


class _Pass(nn.Module):
    """What FSDP shards: a forward pass of it is the loss of a micro-batch, which may call any
    part and method of the network.
    """

    def __init__(self, backbone: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.backbone, self.decoder = backbone, decoder

    def forward(
        self, loss: Callable[..., tuple[Tensor, float]], args: Any, options: Any
    ) -> tuple[Tensor, float]:
        return loss(*args, **options)


def blocks(backbone: nn.Module) -> list[nn.Module]:
    """The parts of a backbone that are gathered one after the other: its transformer layers, or
    none if no class is named.

    Classes come from accelerate's configuration (`fsdp_transformer_layer_cls_to_wrap`), else from
    the model's own list of modules that must not be split (`_no_split_modules`).
    """
    named = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    names = (
        set(named.split(","))
        if named
        else {
            n for part in backbone.modules() for n in getattr(part, "_no_split_modules", None) or ()
        }
    )
    return [part for part in backbone.modules() if type(part).__name__ in names]


def _can_be_sharded(parameter: nn.Parameter) -> bool:
    """Whether a parameter can be sharded: 8-bit layers hold a second reference to their weights
    and read from that.
    """
    return type(parameter).__name__ != "Int8Params"


class FullySharded(DataParallel):
    """Trains a sharded twin of the network; the network itself is empty meanwhile, but while it is
    validated and after the end.

    The twin's backbone is gathered one block at a time, in the forward and backward pass; the rest
    is whole in a pass. Frozen parameters are sharded, too. Outside a pass each process holds its
    shard only.
    """

    lockstep = True

    def __init__(
        self,
        network: Network,
        hardware: Hardware,
        groups: Sequence[Group],
        optimizer: RowAdamW,
        clip: float,
    ) -> None:
        super().__init__(network, hardware, groups, optimizer, clip)
        self.whole = network.backbone, network.decoder
        shared: dict[int, Any] = {
            id(tensor): tensor for part in network.modules() for tensor in _tensors(part)
        }
        self.twin = deepcopy(self.whole, shared)
        root = _Pass(self.twin[0].module(), self.twin[1])
        before = [*root.parameters()]
        mesh = init_device_mesh(hardware.device.type, (self.processes.count,))
        kept = {p for p in before if not _can_be_sharded(p)}
        for part in (*blocks(root.backbone), root):
            fully_shard(part, mesh=mesh, reshard_after_forward=True, ignored_params=kept)
        self.root = root
        self.pairs = [
            (old, new) for old, new in zip(before, root.parameters(), strict=True) if old is not new
        ]
        spread = {id(old): new for old, new in self.pairs}
        self.groups, self.averaged = (
            [tuple(spread[id(p)] for p in group) for group in self.groups],
            self.processes.count,
        )
        _move_state(optimizer, spread)
        self._install(self.twin)
        self._empty()

    def _install(self, parts: Any) -> None:
        self.network.backbone, self.network.decoder = parts
        self.network.backbone_module = parts[0].module()

    def _empty(self) -> None:
        for old, _ in self.pairs:
            old.data = old.data.new_empty(0)

    def compute(
        self, loss: Callable[..., tuple[Tensor, float]], *args: Any, **options: Any
    ) -> tuple[Tensor, float]:
        """A forward pass through what is sharded."""
        found: tuple[Tensor, float] = self.root(loss, args, options)
        return found

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Fill the network meanwhile."""
        self.end()
        try:
            yield
        finally:
            self._install(self.twin)
            self._empty()

    def end(self) -> None:
        """Fill the network from the shards."""
        for old, new in self.pairs:
            old.data = gather_full(new.detach())
            old.requires_grad_(new.requires_grad)
        self._install(self.whole)


def _tensors(part: nn.Module) -> Iterator[Tensor]:
    """The tensors that a module holds, also those of 8-bit weights in its `state`."""
    yield from part.parameters(recurse=False)
    yield from part.buffers(recurse=False)
    yield from (
        value
        for value in vars(getattr(part, "state", SimpleNamespace())).values()
        if isinstance(value, Tensor)
    )


def _move_state(optimizer: torch.optim.Optimizer, spread: dict[int, nn.Parameter]) -> None:
    """Replace the optimiser's parameters by their shards, given by the id of the whole ones,
    with their shard of the state.
    """
    for entry in optimizer.param_groups:
        entry["params"] = [spread[id(p)] for p in entry["params"]]
    for old in list(optimizer.state):
        parameter: Any = spread[id(old)]
        optimizer.state[parameter] = {
            key: distribute_tensor(value, parameter.device_mesh, parameter.placements)
            if value.shape == parameter.shape
            else value
            for key, value in optimizer.state.pop(old).items()
        }


MOMENT_NAMES = ("exp_avg", "exp_avg_sq")
OUR_STATES = ("optimizer", "scheduler")
"""Sections of DeepSpeed's configuration that say what options of the stage say."""


class DeepSpeedZero(DataParallel):
    """DeepSpeed's engine steps the optimiser.

    Micro-batches, schedule, clipping and number format come from the stage's options; ZeRO stage,
    offload and communication from DeepSpeed's configuration. Every process holds whole parameters.
    The engine is given only those that are trained; its optimiser holds the share of this process
    of each group, as one tensor.
    """

    lockstep = True

    def __init__(
        self,
        network: Network,
        hardware: Hardware,
        groups: Sequence[Group],
        optimizer: RowAdamW,
        clip: float,
        accelerator: Accelerator,
    ) -> None:
        super().__init__(network, hardware, groups, optimizer, clip)
        accelerator.state.deepspeed_plugin.deepspeed_config.update(
            stage_settings(clip, self.processes.count)
        )
        self._layout = optimizer.state_dict()["param_groups"]
        self._members = [list(entry["params"]) for entry in optimizer.param_groups]
        learned = {
            p: optimizer.state.pop(p)
            for members in self._members
            for p in members
            if p in optimizer.state
        }
        trained: Any = nn.ParameterList(
            p for group in self.groups for p in group
        )  # all that the engine needs of the network
        trained.config = SimpleNamespace(
            hidden_size=network.backbone.hidden_size
        )  # measures buckets set to auto
        with redirect_stdout(sys.stderr):  # where its log belongs
            self.engine, _ = accelerator.prepare(trained, optimizer)
        self._share(learned)

    def _share(self, learned: dict[nn.Parameter, dict[str, Tensor]]) -> None:
        """Give the share of each group its part of the optimiser state so far."""
        from deepspeed.utils import (
            lazy_init_hp_params_optimizer_state,
            safe_set_full_optimizer_state,
        )

        for entry, members in zip(self.optimizer.param_groups, self._members, strict=True):
            (share,) = entry["params"]
            steps = max((float(learned[p]["step"]) for p in members if p in learned), default=0.0)
            self.optimizer.state[share] = {
                "step": torch.tensor(steps, dtype=torch.float32, device=share.device),
                **{key: torch.zeros_like(share) for key in MOMENT_NAMES},
            }
            lazy_init_hp_params_optimizer_state(members, share, self.optimizer.state)
            for parameter in members:
                for key in MOMENT_NAMES if parameter in learned else ():
                    safe_set_full_optimizer_state(parameter, learned[parameter][key], key)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss)

    def step(self, weight: float, lost: Tensor | None = None) -> Tensor | None:
        """Take one optimiser step; the engine divides the sums by its loss scale, then clips."""
        if not weight:
            for entry in self.optimizer.param_groups:
                entry["lr"] = 0.0  # all rest, the engine forgets what it has gathered
        self.engine.optimizer.loss_scale = (weight or 1.0) / self.processes.count
        self.engine.step()
        self.engine.optimizer.loss_scale = 1.0
        return lost

    def state(self, *, keep: bool) -> dict[str, Any]:
        """The optimiser's state by whole parameters."""
        from deepspeed.utils import safe_get_full_optimizer_state

        found: dict[int, dict[str, Tensor]] = {}
        for entry, layout, members in zip(
            self.optimizer.param_groups, self._layout, self._members, strict=True
        ):
            steps = self.optimizer.state[entry["params"][0]]["step"].cpu()
            for number, parameter in zip(layout["params"], members, strict=True) if steps else ():
                moments = {
                    key: safe_get_full_optimizer_state(parameter, key) for key in MOMENT_NAMES
                }
                found[number] = (
                    {"step": steps.clone(), **{key: value.cpu() for key, value in moments.items()}}
                    if keep
                    else {}
                )
        return {"state": found, "param_groups": self._layout} if keep else {}

    def end(self) -> None:
        """Give parameters their own memory back."""
        self.engine.destroy()
        for members in self._members:
            for parameter in members:
                parameter.data = parameter.data.clone()


def stage_settings(clip: float, processes: int) -> dict[str, Any]:
    """What options of the stage say of DeepSpeed's configuration; one step of the engine is one
    step of the loop.
    """
    return {
        "gradient_clipping": clip,
        "gradient_accumulation_steps": 1,
        "train_micro_batch_size_per_gpu": 1,
        "train_batch_size": processes,
        "bf16": {
            "enabled": False
        },  # products run in bf16 as --precision says, weights stay in fp32
        "fp16": {"enabled": False},
        "zero_force_ds_cpu_optimizer": False,
    }


def refuse_configuration(config: dict[str, Any]) -> None:
    """Refuse a configuration of DeepSpeed, as accelerate makes it of the launch file, before
    there is work to lose.
    """
    stage = config.get("zero_optimization", {}).get("stage", 0)
    if stage not in (1, 2):
        raise UsageError(
            f"DeepSpeed cannot train here with ZeRO stage {stage}",
            where="the launch configuration, zero_stage",
            expected="1 (the optimiser's state is shared) or 2 (gradients, too)",
            todo="zero_stage: 2; to share the parameters themselves, distributed_type: FSDP",
        )
    doubled = [name for name in OUR_STATES if name in config]
    if doubled:
        raise UsageError(
            f"DeepSpeed's configuration names its own {' and '.join(doubled)}",
            where="the launch configuration, deepspeed_config_file",
            expected="a configuration without them: the stage's options say how fast parameters "
            "learn",
            todo=f"remove {' and '.join(doubled)} from that file",
        )


def choose_strategy(
    network: Network,
    hardware: Hardware,
    groups: Sequence[Group],
    optimizer: RowAdamW,
    clip: float,
    accelerator: Accelerator,
    reporter: Reporter,
) -> DataParallel:
    """The strategy that was asked for; a note says what is sharded."""
    asked, count = sharing_mode(), hardware.processes.count
    if asked == "whole":
        return DataParallel(network, hardware, groups, optimizer, clip)
    if any(values["step"].numel() > 1 for values in optimizer.state.values()):
        raise UsageError(
            "the checkpoint comes from sparse updates, which need whole label tables in every "
            "process",
            where=f"distributed_type: {asked.upper()}",
            expected="a checkpoint of a run with --no-sparse-updates",
            todo="--resume under distributed_type: MULTI_GPU, or train again with "
            "--no-sparse-updates --force",
        )
    if asked == "fsdp":
        reporter.note(f"backbone and label tables are sharded over {count} processes")
        return FullySharded(network, hardware, groups, optimizer, clip)
    reporter.note(f"DeepSpeed steps the optimiser (processes: {count})")
    return DeepSpeedZero(network, hardware, groups, optimizer, clip, accelerator)
