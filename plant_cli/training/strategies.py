"""Training in several processes: data parallel, FSDP and DeepSpeed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal, Protocol, cast

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.export import register_dataclass

from plant_cli.api import ComponentError, GroupedReading, Reading, Reporter, UsageError
from plant_cli.network.quantization import can_be_sharded
from plant_cli.runs.group import SINGLE_PROCESS, Processes, gather_full
from plant_cli.runs.processes import process_count, was_launched


def _values(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Values of the gradients: of a sparse one its rows, of a sharded one the shard of this process."""
    learnt = [(p, p.grad) for p in parameters if p.grad is not None]
    return [touched_rows(p)[1] if g.is_sparse else g.to_local() if isinstance(g, DTensor) else g for p, g in learnt]


def touched_rows(table: nn.Parameter) -> tuple[Tensor, Tensor]:
    """The rows [n] that a table's gradient holds, each once, and their gradients [n, …]."""
    gradient = table.grad
    assert gradient is not None
    if not gradient.is_sparse:
        return torch.arange(len(table), device=table.device), gradient
    table.grad = gradient = gradient.coalesce()
    return gradient.indices()[0], gradient.values()


def add_gradients(processes: Processes, parameters: Sequence[nn.Parameter], tables: Sequence[nn.Parameter]) -> None:
    """Replace the gradients of parameters by their sums over all processes; of a table, the rows that any process touched."""
    if processes.count == 1:
        return
    dense = [p for p in parameters if not isinstance(p, DTensor) and not any(p is table for table in tables)]
    for parameter in dense:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    processes.add(parameter.grad for parameter in dense if parameter.grad is not None)
    for table in parameters:
        if any(table is one for one in tables):
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
    return torch.sparse_coo_tensor(all_rows[filled][None], all_values[filled], table.shape, check_invariants=False).coalesce()


def scale_gradients(parameters: Sequence[nn.Parameter], factor: float, processes: Processes) -> None:
    """Multiply summed gradients by a factor; those of sharded parameters are still means over the processes."""
    spread, others = _apart(parameters)
    for found, by in ((spread, factor * processes.count), (others, factor)):
        for values in _values(found):
            values.mul_(by)


def clip_gradients(parameters: Sequence[nn.Parameter], largest: float, processes: Processes = SINGLE_PROCESS) -> None:
    """Scale all gradients, sparse and sharded ones too, to a joint norm of at most `largest`."""
    spread, others = _apart(parameters)
    norms = [torch.linalg.vector_norm(values) for values in _values(others)]
    if spread:
        square = torch.stack([torch.linalg.vector_norm(values) for values in _values(spread)]).square().sum()
        processes.add([square])
        norms.append(square.sqrt())
    norm = torch.linalg.vector_norm(torch.stack(norms))
    factor = (largest / (norm + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_ does it
    for values in _values(parameters):
        values.mul_(factor)


def _apart(parameters: Sequence[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Sharded parameters, and the others."""
    return [p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)]


def full_state(optimizer: torch.optim.Optimizer, *, keep: bool) -> dict[str, Any]:
    """State of an optimiser with full tensors; empty unless `keep`. A collective call: every process must make it."""
    state = optimizer.state_dict()
    gathered: dict[int, dict[str, Any]] = {}
    for number, values in state["state"].items():  # one after the other: a device need not hold them all
        found = {key: gather_full(value).cpu() if keep else gather_full(value) for key, value in values.items()}
        gathered[number] = found if keep else {}
    return {**state, "state": gathered} if keep else {}


Group = tuple[nn.Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class Trainable:
    """The network and optimiser that are trained, as a strategy needs them."""

    backbone: nn.Module  # the same in all processes, whole
    decoder: nn.Module  # likewise
    hidden_size: int  # of the backbone
    groups: Sequence[Group]  # the parameters that are trained, by group; all ask for gradients
    tables: Sequence[nn.Parameter]  # those of them with sparse gradients
    optimizer: torch.optim.Optimizer  # of these groups, with the state that training continues from
    clip: float  # largest norm of the gradient
    device: torch.device  # where the network is
    processes: Processes  # those that train together


class Strategy(Protocol):
    """How processes that train one network share its parameters, gradients and optimiser state.

    All calls but `backward` are collective: every process must make them.

    Attributes:
        groups: the parameters that are trained, whole or sharded.
        lockstep: whether all processes must make the same number of forward and backward passes between two steps; a process
            without work makes one of weight zero.
    """

    groups: Sequence[Group]
    lockstep: bool

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch; `last`: the last one of this process before a step."""
        ...

    def step(self, weight: float) -> None:
        """One step with the gradients of all processes, divided by `weight` and clipped; weight 0: only clear the gradients."""
        ...

    def state(self, *, keep: bool) -> dict[str, Any]:
        """State of the optimiser over whole parameters, from which any number of processes can continue; empty unless `keep`."""
        ...

    def gathered(self) -> AbstractContextManager[None]:
        """Inside: all parameters whole in every process, for reading only, without further communication."""
        ...

    def end(self) -> None:
        """Make the network's parameters whole in every process."""
        ...


class DataParallel:
    """Every process holds the whole network; gradients are summed. Also the strategy of a single process."""

    lockstep = False

    def __init__(self, trained: Trainable) -> None:
        self.trained = trained
        self.processes = trained.processes
        self.groups = trained.groups
        self.optimizer = trained.optimizer

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch."""
        torch.autograd.backward(loss)

    def step(self, weight: float) -> None:
        """Take one optimiser step."""
        if weight:
            parameters = self._with_gradient()
            add_gradients(self.processes, parameters, self.trained.tables)
            scale_gradients(parameters, 1.0 / weight, self.processes)
            clip_gradients(parameters, self.trained.clip, self.processes)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _with_gradient(self) -> list[nn.Parameter]:
        """Parameters with a gradient in any process."""
        parameters = [p for group in self.groups for p in group]
        counts = torch.tensor([float(p.grad is not None) for p in parameters])
        self.processes.add([counts])
        return [parameter for parameter, count in zip(parameters, counts.tolist(), strict=True) if count]

    def state(self, *, keep: bool) -> dict[str, Any]:
        """The weights by name and the optimiser's state."""
        return full_state(self.optimizer, keep=keep)

    def gathered(self) -> AbstractContextManager[None]:
        """Have all parameters whole inside."""
        return nullcontext()

    def end(self) -> None:
        """Nothing to do: parameters are whole."""


MOMENTS = ("exp_avg", "exp_avg_sq")
OURS = ("optimizer", "scheduler")
"""Sections of DeepSpeed's configuration that say what options of the stage say."""


class DeepSpeedZero:
    """DeepSpeed's engine steps the optimiser (`Strategy`).

    Micro-batches, schedule, clipping and number format come from the stage's options; ZeRO stage, offload and communication from
    DeepSpeed's configuration. Every process holds whole parameters. The engine is given only those that are trained.
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
        """Add the gradients of a micro-batch."""
        self.engine.set_gradient_accumulation_boundary(last)
        self.engine.backward(loss)

    def step(self, weight: float) -> None:
        """Take one optimiser step; the engine divides the sums by its loss scale, then clips."""
        if not weight:
            for entry in self.optimizer.param_groups:
                entry["lr"] = 0.0  # all rest, the engine forgets what it has gathered
        self.engine.optimizer.loss_scale = (weight or 1.0) / self.processes.count
        self.engine.step()
        self.engine.optimizer.loss_scale = 1.0

    def state(self, *, keep: bool) -> dict[str, Any]:
        """The weights by name and the optimiser's state."""
        from deepspeed.utils import safe_get_full_optimizer_state

        found: dict[int, dict[str, Tensor]] = {}
        for entry, layout, members in zip(self.optimizer.param_groups, self._layout, self._members, strict=True):
            steps = self.optimizer.state[entry["params"][0]]["step"].cpu()
            for number, parameter in zip(layout["params"], members, strict=True) if steps else ():
                moments = {key: safe_get_full_optimizer_state(parameter, key) for key in MOMENTS}
                found[number] = {"step": steps.clone(), **{key: value.cpu() for key, value in moments.items()}} if keep else {}
        return {"state": found, "param_groups": self._layout} if keep else {}

    def gathered(self) -> AbstractContextManager[None]:
        """Nothing to do: parameters are whole."""
        return nullcontext()

    def end(self) -> None:
        """Give parameters their own memory back."""
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
    """Refuse a configuration that is not supported."""
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


METHODS = ("rank", "attention", "gather", "score_pairs", "rank_pairs", "read_groups")
"""Methods of a decoder that read its parameters, beside `forward`."""
for kind in (Reading, GroupedReading):  # so that FSDP finds the hidden states in what the decoder is given, and their gradients
    register_dataclass(kind)


def blocks(backbone: nn.Module) -> list[nn.Module]:
    """The parts of a backbone that are gathered one after the other: its transformer layers, or none if no class is named.

    Classes come from accelerate's configuration (`fsdp_transformer_layer_cls_to_wrap`), else from the model's own list of modules
    that must not be split (`_no_split_modules`).
    """
    named = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    names = set(named.split(",")) if named else {n for part in backbone.modules() for n in getattr(part, "_no_split_modules", None) or ()}
    return [part for part in backbone.modules() if type(part).__name__ in names]


class FullySharded(DataParallel):
    """Shards a network, and at the end makes its parameters whole again.

    The backbone is gathered one block at a time, in the forward and backward pass; the decoder is whole from its first use in a pass to
    the end of that pass. Frozen parameters are sharded, too. Outside a pass each process holds its shard only.
    """

    lockstep = True

    def __init__(self, trained: Trainable) -> None:
        roots = (trained.backbone, trained.decoder)
        self._before = [_OriginalModule(module=part, kind=type(part), values=_copied(part)) for root in roots for part in root.modules()]
        _shard(trained, init_device_mesh(trained.device.type, (trained.processes.count,)))
        spread = {id(old): new for before in self._before for old, new in before.parameters()}
        _move_state(trained.optimizer, spread)
        for before in self._before:
            before.empty()
        super().__init__(replace(trained, groups=[tuple(spread[id(p)] for p in group) for group in trained.groups]))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Have all parameters whole inside."""
        roots = (self.trained.backbone, self.trained.decoder)
        spread = [cast(FSDPModule, part) for root in roots for part in root.modules() if isinstance(part, FSDPModule)]
        backbone = cast(FSDPModule, self.trained.backbone)
        backbone.set_reshard_after_forward(False)
        for part in spread:
            part.unshard()
        try:
            yield
        finally:
            backbone.set_reshard_after_forward(True)
            for part in spread:
                part.reshard()

    def end(self) -> None:
        """Fill the original parameters again."""
        for before in self._before:
            before.fill()
        for before in self._before:
            before.bring_back()


def _shard(trained: Trainable, mesh: DeviceMesh) -> None:
    kept = {p for root in (trained.backbone, trained.decoder) for p in root.parameters() if not can_be_sharded(p)}
    for part in (*blocks(trained.backbone), trained.backbone):
        fully_shard(part, mesh=mesh, reshard_after_forward=True, ignored_params=kept)
    fully_shard(trained.decoder, mesh=mesh, reshard_after_forward=False)
    for name in METHODS:
        if hasattr(trained.decoder, name):
            register_fsdp_forward_method(trained.decoder, name)


@dataclass(frozen=True, kw_only=True)
class _OriginalModule:
    """A module before it was sharded: its class, hooks and parameters. The parameters are empty while it is sharded."""

    module: nn.Module
    kind: type[nn.Module]
    values: dict[str, Any]

    def parameters(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Its own parameters: the originals, and those that it has now."""
        now = self.module._parameters
        return [(old, cast(nn.Parameter, now[name])) for name, old in self.values["_parameters"].items() if old is not None]

    def empty(self) -> None:
        for old, new in self.parameters():
            if old is not new:
                old.data = old.data.new_empty(0)

    def fill(self) -> None:
        for old, new in self.parameters():
            if isinstance(new, DTensor) and not old.numel():  # a parameter may be in several modules
                old.data = gather_full(new.detach())

    def bring_back(self) -> None:
        kept = {"_buffers": self.module._buffers, "training": self.module.training}
        vars(self.module).clear()
        vars(self.module).update(self.values | kept)
        self.module.__class__ = self.kind


def _copied(module: nn.Module) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, dict | list) else value for name, value in vars(module).items()}  # an LSTM has a list


def _move_state(optimizer: torch.optim.Optimizer, spread: dict[int, nn.Parameter]) -> None:
    """Replace the optimiser's parameters by their shards, given by the id of the whole ones, with their shard of the state."""
    for entry in optimizer.param_groups:
        entry["params"] = [spread[id(p)] for p in entry["params"]]
    for old in list(optimizer.state):
        parameter = cast(DTensor, spread[id(old)])
        optimizer.state[parameter] = {
            key: distribute_tensor(value, parameter.device_mesh, parameter.placements) if value.shape == parameter.shape else value
            for key, value in optimizer.state.pop(old).items()
        }


def sharing_mode() -> Literal["whole", "fsdp", "deepspeed"]:
    """What `distributed_type` asks for: a whole network in every process, a sharded one (FSDP), or DeepSpeed's engine."""
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
    """Refuse a launch configuration that cannot be followed, before there is work to lose."""
    if sharing_mode() == "deepspeed":
        refuse_configuration(accelerator.state.deepspeed_plugin.deepspeed_config)


def choose_strategy(trained: Trainable, accelerator: Accelerator, reporter: Reporter) -> Strategy:
    """The strategy that was asked for; a note says what is sharded."""
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
        reporter.note(f"backbone and label tables are sharded over {count} processes")
        return FullySharded(trained)

    reporter.note(f"DeepSpeed steps the optimiser (processes: {count})")
    return DeepSpeedZero(trained, accelerator)
