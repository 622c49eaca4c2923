"""Processes that share a network take the steps of one process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator, DeepSpeedPlugin
from plant_network.group import SINGLE_PROCESS
from plant_network.hardware import Hardware, sharing_mode
from plant_network.optimiser import Rates, make_groups, make_optimizer
from plant_network.strategies import (
    DataParallel,
    add_gradients,
    blocks,
    choose_strategy,
    clip_gradients,
    full_state,
    refuse_configuration,
    scale_gradients,
    stage_settings,
)
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn import functional

from plant_cli.api import ComponentError, SilentReporter, UsageError

TEXTS = [["fever a cough b c", "patient d"], ["a b c d e f g"], ["cough", "fever patient a b"]]
TARGETS = {"llama": ("q_proj", "v_proj"), "bert": ("query", "value")}


def build(folder: Path, lstm: int | None = None, **options: Any) -> Any:
    """A network on the model in `folder`, without dropout; its adapters do something from the
    start. With `lstm`: on two levels.
    """
    from plant_backbones.huggingface import HuggingFaceBackbone, Profile
    from plant_backbones.quantization import HuggingFaceOptions
    from plant_decoders import JointLaatOptions, LabelAttentionOptions
    from plant_decoders.label_attention import LabelAttention
    from plant_decoders.published_decoders import JointLaat
    from plant_network.assembly import Network

    from plant_cli.api import DecoderShape, ModelSection
    from plant_cli.data.labels import LabelTable

    torch.manual_seed(0)
    kind = "causal" if folder.name == "llama" else "encoder"
    targets: Any = {"adapter_targets": TARGETS[folder.name], "kind": kind}
    profile = Profile(model=str(folder), device="cpu", precision="fp32", **targets)
    backbone = HuggingFaceBackbone(profile, HuggingFaceOptions(**{"lora_dropout": 0.0} | options))
    for name, parameter in backbone.network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    for part in backbone.network.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    shape = DecoderShape(hidden=32, labels=7, parents=list("aabbccc"))
    decoder: Any = LabelAttention(LabelAttentionOptions(heads=2, pool=8, init_scale=0.5), shape)
    if lstm is not None:
        decoder = JointLaat(JointLaatOptions(lstm=lstm, inner=8, context=4, dropout=0.0), shape)
    labels = LabelTable(ids=[str(i) for i in range(7)], titles=[None] * 7, train_counts=[1] * 7)
    return Network(backbone, decoder, ModelSection(), labels)


def held(tensors: Sequence[torch.Tensor]) -> int:
    """Bytes that this process has of them."""
    local = [t.to_local() if isinstance(t, DTensor) else t for t in tensors]
    return sum(t.numel() * t.element_size() for t in local)


def learn(folder: Path, out: Path, epochs: Sequence[int], **options: Any) -> dict[str, Any]:
    """Three micro-batches a step, two steps an epoch, unfrozen gradually; goes on from the
    checkpoint in `out`, if there is one.
    """
    from plant_network import checkpointing
    from plant_network import optimiser as unfreezing
    from plant_network.checkpointing import open_tracker
    from plant_network.hardware import choose_hardware
    from plant_network.strategies import choose_strategy

    from plant_cli.api import GroupedDecoder, MachineSection, Reading, SilentReporter
    from plant_cli.training.training_options import Schedule

    network = build(folder, **options)
    hardware = choose_hardware(MachineSection(device="cpu", precision="fp32"))
    processes = hardware.processes
    groups = unfreezing.make_groups(
        network, unfreezing.Rates(head=3e-3, boost=3e-3, attention=3e-3, backbone=3e-3)
    )
    chosen = {id(p) for g in groups for p in g.parameters}
    names = [name for name, p in network.named_parameters() if id(p) in chosen]
    for parameter in network.parameters():
        parameter.requires_grad_(id(parameter) in chosen)
    optimizer = unfreezing.make_optimizer(groups, 0.01)
    checkpointing.load_checkpoint(out, network, optimizer, print)
    accelerator = open_tracker(
        None, out, {}, cpu=os.environ.get("ACCELERATE_USE_DEEPSPEED") != "true"
    )
    strategy = choose_strategy(
        network, hardware, groups, optimizer, 0.05, accelerator, SilentReporter()
    )

    def loss_of(number: int) -> torch.Tensor:
        reading = Reading.of(*network.backbone.encode(network.backbone.tokenize(TEXTS[number])))
        groups = 0.0
        if isinstance(network.decoder, GroupedDecoder):
            reading = network.decoder.read_groups(reading)
            groups = torch.nn.functional.softplus(
                torch.tensor([1.0, -1.0, 1.0]) * reading.group_logits
            ).mean()
        logits = network.decoder(reading)
        # a loss whose gradient does not vanish
        return (
            groups
            + torch.nn.functional.softplus(torch.tensor([1.0, -1.0] * 3 + [1.0]) * logits).mean()
        )

    def add_gradients(number: int, weight: float, *, last: bool) -> None:
        loss, _ = strategy.compute(lambda: (loss_of(number), 1.0))
        strategy.backward(loss * weight, last=last)

    groups = [
        replace(group, parameters=found)
        for group, found in zip(groups, strategy.groups, strict=True)
    ]
    add_gradients(0, 0.0, last=True)
    strategy.step(0.0)  # of documents without any list: is not even counted
    seen = []
    for epoch in epochs:
        active = unfreezing.factors(groups, epoch, Schedule(gradual=True, attention_factor=0.3))
        unfreezing.unfreeze(groups, active)
        network.train()
        for _ in range(2):
            unfreezing.set_rates(optimizer, groups, 1.0, active)
            share = [(number, 1.0) for number in processes.share(range(3))]
            if strategy.lockstep and processes.rank == 1:
                share.append((0, 0.0))
            weight = torch.zeros(1)
            for place, (number, part) in enumerate(share, 1):
                weight += len(TEXTS[number]) * part
                add_gradients(number, len(TEXTS[number]) * part, last=place == len(share))
            processes.add([weight])
            strategy.step(float(weight))
        with torch.no_grad(), strategy.gathered():  # the first reads more than the other
            network.eval()
            seen += [float(loss_of(number)) for number in range(3 if processes.first else 1)]
    sizes = {"parameters": held([*network.parameters()])}
    sizes["state"] = held(
        [value for values in optimizer.state.values() for value in values.values()]
    )
    weights = {name: p for name, p in network.named_parameters() if name in names}
    position = checkpointing.TrainingState(step=2 * epochs[-1] + 2)
    checkpointing.save_checkpoint(
        out if processes.first else None,
        weights,
        strategy.state(keep=processes.first),
        position,
        {},
    )
    strategy.end()
    full = {name: p.detach().clone() for name, p in network.named_parameters()}
    kinds = {type(part).__name__ for part in network.modules()}
    return {
        "seen": seen,
        "sizes": sizes,
        "whole": full,
        "kinds": kinds,
        "after": held([*network.parameters()]),
    }


def together(
    folder: Path, out: Path, cases: list[dict[str, Any]], **environment: str
) -> list[dict[str, Any]]:
    """What the first of two processes makes of the cases."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    meeting["CUDA_VISIBLE_DEVICES"] = ""  # on processors, wherever this runs
    command = [sys.executable, __file__, str(folder), str(out), json.dumps(cases)]
    started = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                **meeting,
                **environment,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0], (
        said[0][1][-2000:] + said[1][1][-2000:]
    )
    return [torch.load(out / f"{number}.pt", weights_only=True) for number in range(len(cases))]


def assert_same(found: dict[str, Any], expected: dict[str, Any], *, short: bool = False) -> None:
    """Equal but for rounding; products with short weights are in bf16, and all weights move by
    some 2e-2.
    """
    assert found["seen"] == pytest.approx(expected["seen"], rel=5e-2 if short else 1e-3, abs=1e-5)
    assert found["whole"].keys() == expected["whole"].keys()
    for name, tensor in expected["whole"].items():
        if not name.endswith("key.bias"):  # softmax takes it off again
            torch.testing.assert_close(
                found["whole"][name], tensor, atol=2e-3 if short else 1e-4, rtol=1e-3
            )


CASES: dict[str, list[dict[str, Any]]] = {
    "bert": [{"adapter": "full"}, {"adapter": "full", "lstm": 0}, {"adapter": "full", "lstm": 4}],
    "llama": [
        {"adapter": "dora", "gradient_checkpointing": True},
        {"adapter": "lora", "quantization": "nf4"},
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("family", CASES)
def test_a_spread_network_learns_what_a_whole_one_does_with_half_of_the_memory(
    family: str, small_model: Callable[..., Path], tmp_path: Path
) -> None:
    import transformers

    folder = small_model(getattr(transformers, f"{family.capitalize()}Config"))
    cases = CASES[family]
    expected = [
        learn(folder, tmp_path / f"alone-{number}", range(4), **case)
        for number, case in enumerate(cases)
    ]
    for found, alone, case in zip(
        together(folder, tmp_path, cases, ACCELERATE_USE_FSDP="true"), expected, cases, strict=True
    ):
        assert_same(found, alone, short="quantization" in case)
        for what in ("parameters", "state"):
            assert 0.4 * alone["sizes"][what] < found["sizes"][what] < 0.6 * alone["sizes"][what]
        assert (found["after"], set(found["kinds"])) == (alone["after"], alone["kinds"])


@pytest.mark.slow
def test_weights_in_8_bits_stay_whole(small_model: Callable[..., Path], tmp_path: Path) -> None:
    from transformers import LlamaConfig

    folder = small_model(LlamaConfig)
    alone = learn(folder, tmp_path / "alone", range(4), adapter="lora", quantization="int8")
    (found,) = together(
        folder, tmp_path, [{"adapter": "lora", "quantization": "int8"}], ACCELERATE_USE_FSDP="true"
    )
    assert_same(found, alone, short=True)
    assert found["sizes"]["state"] < 0.6 * alone["sizes"]["state"]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["1", "2"])
def test_deepspeed_learns_what_one_process_does_with_half_of_the_state(
    stage: str, small_model: Callable[..., Path], tmp_path: Path
) -> None:
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    from transformers import BertConfig

    folder = small_model(BertConfig)
    alone = learn(folder, tmp_path / "alone", range(4), adapter="full")
    zero = {"ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": stage}
    (found,) = together(folder, tmp_path, [{"adapter": "full"}], **zero)
    assert_same(found, alone)
    assert found["sizes"]["state"] < 0.6 * alone["sizes"]["state"]
    assert found["after"] == alone["after"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["fsdp", "deepspeed"])
def test_a_checkpoint_does_not_know_who_wrote_it(
    way: str, small_model: Callable[..., Path], tmp_path: Path
) -> None:
    """One process, then two that share, then one: the same as one all along."""
    if way == "deepspeed":
        pytest.importorskip("deepspeed", reason="DeepSpeed is not installed")
    from transformers import BertConfig

    folder = small_model(BertConfig)
    alone = learn(folder, tmp_path / "alone", range(4), adapter="full")
    environment = {f"ACCELERATE_USE_{way.upper()}": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}
    learn(folder, tmp_path / "0", [0, 1], adapter="full")
    together(folder, tmp_path, [{"adapter": "full", "epochs": [2]}], **environment)
    found = learn(folder, tmp_path / "0", [3], adapter="full")
    assert_same(found, {**alone, "seen": alone["seen"][-3:]})


if __name__ == "__main__":
    place = Path(sys.argv[2])
    for index, given in enumerate(json.loads(sys.argv[3])):
        made = learn(Path(sys.argv[1]), place / str(index), given.pop("epochs", range(4)), **given)
        if os.environ["RANK"] == "0":
            torch.save({**made, "kinds": sorted(made["kinds"])}, place / f"{index}.pt")


class Layer(nn.Module):
    pass


class Model(nn.Module):
    _no_split_modules = ("Layer",)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm = nn.LayerNorm(2)


def test_blocks_are_what_the_model_does_not_want_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FSDP_TRANSFORMER_CLS_TO_WRAP", raising=False)
    model = Model()
    assert blocks(nn.Sequential(model)) == list(
        model.layers
    )  # also of a model in a wrapper, as adapters are


def test_or_what_the_launch_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FSDP_TRANSFORMER_CLS_TO_WRAP", "LayerNorm,Unknown")
    model = Model()
    assert blocks(model) == [model.norm]


def test_a_backbone_that_names_none_is_gathered_at_once(
    small_network: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FSDP_TRANSFORMER_CLS_TO_WRAP", raising=False)
    assert blocks(small_network().backbone_module) == []


def refused(config: dict[str, Any]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        refuse_configuration(config)
    return caught.value


@pytest.mark.parametrize("stage", [0, 3])
def test_other_stages_are_refused_with_what_shares_parameters(stage: int) -> None:
    error = refused(DeepSpeedPlugin(zero_stage=stage).deepspeed_config)
    assert f"stage {stage}" in error.what
    assert "FSDP" in error.todo


def test_an_optimiser_is_declared_once() -> None:
    error = refused(
        {"zero_optimization": {"stage": 2}, "optimizer": {"type": "Adam"}, "scheduler": {}}
    )
    assert "its own optimizer and scheduler" in error.what
    assert "deepspeed_config_file" in error.where


def test_deepspeed_is_configured_by_the_launch_file_and_by_the_options_of_the_stage() -> None:
    """Accelerate makes the configuration; what the stage says itself replaces what the launch
    file says.
    """
    config = DeepSpeedPlugin(
        zero_stage=2, gradient_accumulation_steps=4, gradient_clipping=7.0
    ).deepspeed_config
    refuse_configuration(config)
    config.update(stage_settings(clip=0.5, processes=2))
    assert config["zero_optimization"]["stage"] == 2
    assert config["gradient_clipping"] == 0.5
    assert (
        config["train_batch_size"]
        == 2 * config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"]
        == 2
    )
    assert not config["bf16"]["enabled"]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A process that a launcher started; its number of processes and what they share is set by
    the test.
    """
    for name in ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("RANK", "0"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def trained(small_network: Callable[..., Any]) -> dict[str, Any]:
    network = small_network()
    groups = make_groups(network, Rates(head=0.1, boost=0.1, attention=0.1, backbone=0.1))
    hardware = Hardware(device=torch.device("cpu"), dtype=torch.float32)
    optimizer = make_optimizer(groups, 0.0)
    return {
        "network": network,
        "hardware": hardware,
        "groups": groups,
        "optimizer": optimizer,
        "clip": 1.0,
        "reporter": SilentReporter(),
    }


def test_networks_are_spread_where_the_launcher_says_so_and_there_is_somebody_to_share_with(
    launched: pytest.MonkeyPatch,
) -> None:
    launched.setenv("WORLD_SIZE", "2")
    assert sharing_mode() == "whole"
    launched.setenv("ACCELERATE_USE_FSDP", "true")
    assert sharing_mode() == "fsdp"
    launched.setenv("WORLD_SIZE", "1")
    assert sharing_mode() == "whole"


def test_deepspeed_must_be_installed(launched: pytest.MonkeyPatch) -> None:
    launched.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    launched.setattr("plant_network.hardware.find_spec", lambda name: None)
    assert sharing_mode() == "whole"  # a variable left behind, not a launcher's
    launched.setenv("WORLD_SIZE", "1")
    with pytest.raises(ComponentError, match="DeepSpeed, which is not installed") as caught:
        sharing_mode()
    assert "pip install deepspeed" in caught.value.todo
    assert "FSDP" in caught.value.todo


@pytest.mark.usefixtures("launched")
def test_alone_the_network_stays_as_it_is(trained: dict[str, Any]) -> None:
    strategy = choose_strategy(**trained, accelerator=Accelerator(cpu=True))
    assert type(strategy) is DataParallel
    assert not strategy.lockstep
    assert strategy.groups == [group.parameters for group in trained["groups"]]


def test_rows_that_have_had_steps_of_their_own_are_not_shared(
    trained: dict[str, Any], launched: pytest.MonkeyPatch
) -> None:
    table = trained["optimizer"].param_groups[0]["params"][0]
    trained["optimizer"].state[table] = {"step": torch.ones(4)}
    launched.setenv("WORLD_SIZE", "2")
    launched.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(UsageError, match="sparse updates") as caught:
        choose_strategy(**trained, accelerator=Accelerator(cpu=True))
    assert "FSDP" in caught.value.where
    assert "--resume" in caught.value.todo


def table(seed: int = 0) -> nn.Parameter:
    return nn.Parameter(
        torch.randn(6, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    )


@pytest.mark.parametrize("largest", [0.5, 100.0])
def test_sparse_gradients_are_clipped_as_dense_ones(largest: float) -> None:
    """Two micro-batches that share a row accumulate; the norm is that of the sum."""
    parts, dense = ([table(), table(1)] for _ in range(2))
    for labels in (torch.tensor([0, 2]), torch.tensor([2, 4])):
        for (rows, other), is_sparse in ((parts, True), (dense, False)):
            loss = (
                functional.embedding(labels, rows, sparse=is_sparse).square().sum()
                + other.square().sum()
            )
            loss.backward()  # type: ignore[no-untyped-call]
    assert parts[0].grad is not None
    assert parts[0].grad.is_sparse
    clip_gradients(parts, largest)
    torch.nn.utils.clip_grad_norm_(dense, largest)
    torch.testing.assert_close(parts[0].grad.to_dense(), dense[0].grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(parts[1].grad, dense[1].grad, rtol=1e-12, atol=1e-12)


def test_scaling_multiplies_sparse_and_dense_gradients() -> None:
    dense, sparse = table(), table(1)
    dense.grad = torch.ones_like(dense)
    functional.embedding(torch.tensor([2]), sparse, sparse=True).sum().backward()  # type: ignore[no-untyped-call]
    scale_gradients([dense, sparse], 0.25)
    assert sparse.grad is not None
    assert (dense.grad.unique().tolist(), sparse.grad.to_dense().sum().item()) == ([0.25], 0.25 * 3)


def test_a_process_on_its_own_adds_nothing() -> None:
    parameter = table()
    add_gradients(SINGLE_PROCESS, [parameter], frozenset())
    assert parameter.grad is None


def test_the_state_of_an_optimiser_is_given_if_it_is_to_be_kept() -> None:
    parameter = table()
    optimizer = torch.optim.AdamW([parameter])
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert full_state(optimizer, keep=False) == {}
    kept = full_state(optimizer, keep=True)
    assert torch.equal(kept["state"][0]["exp_avg"], optimizer.state[parameter]["exp_avg"])
