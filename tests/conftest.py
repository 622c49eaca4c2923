"""For all tests: nothing reaches the network, and the slow ones come last."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from plant_cli.runs.machine import limit_spinning

pytest_plugins = ("builders", "laboratory", "clinic")
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *"abcdefghijklmnopqrstuvwxyz",
    "fever",
    "cough",
    "patient",
]
SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}

if "PYTEST_XDIST_WORKER" in os.environ:  # several processes share the cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("shared machine", deadline=None)  # a slow example is no fault
settings.load_profile("shared machine")
limit_spinning()  # as the command does, before torch is loaded
os.environ["HF_HUB_OFFLINE"] = "1"  # for this process and those that tests start
if os.environ.get("PLANT_TEST_CARD") != "1":  # the expected figures are a processor's
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.setdefault(
        "TRITON_INTERPRET", "1"
    )  # whoever imports triton first decides for all whether its kernels are compiled


@pytest.fixture(autouse=True, scope="session")
def _offline() -> Any:
    """Refuse every connection but those to this machine itself."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX and address[0] not in LOOPBACK:
            raise PermissionError(f"a test tried to reach {address[0]}: tests run offline")
        return connect(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def _smallest_numbers() -> Iterator[None]:
    """Stages have numbers next to zero flushed, for the rest of their process; the next test
    sees them again.
    """
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests last; otherwise the order stays."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)


@pytest.fixture
def corpora() -> Path:
    """The shared real corpora."""
    folder = Path(os.environ.get("PLANT_CORPORA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the shared corpora are not here")
    return folder


@pytest.fixture
def gpu() -> Any:
    """The first GPU; tests that need one are skipped where there is none."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device: torch finds none here")
    return torch.device("cuda")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the numerics take their Triton kernels on the processor, run by Triton's interpreter."""
    pytest.importorskip("triton", reason="Triton is not published for this system")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip(
            "Triton compiles its kernels on this machine; TRITON_INTERPRET=1 interprets them"
        )
    for module in ("plant_decoders.attention", "plant_losses.list_ranking"):
        monkeypatch.setattr(f"{module}.uses_triton", lambda device: True)


@pytest.fixture
def small_network() -> Callable[..., Any]:
    """Builds a network on the backbone `tiny` without dropout; equal arguments give equal
    weights: `small_network(seed=0, labels=4)`.
    """

    def build(seed: int = 0, labels: int = 4, **backbone: Any) -> Any:
        import torch
        from plant_backbones import TinyOptions
        from plant_backbones.tiny import TinyBackbone
        from plant_decoders import LabelAttentionOptions
        from plant_decoders.label_attention import LabelAttention
        from plant_network.assembly import Network

        from plant_cli.api import DecoderShape, ModelSection
        from plant_cli.data.labels import LabelTable

        torch.manual_seed(seed)
        options = TinyOptions(
            **{
                "hidden": 16,
                "heads": 2,
                "layers": 1,
                "buckets": 64,
                "dropout": 0.0,
                "window": 8,
                "overlap": 2,
            }
            | backbone
        )
        decoder = LabelAttention(
            LabelAttentionOptions(heads=2, pool=8, init_scale=0.5),
            DecoderShape(hidden=16, labels=labels),
        )
        names = [f"label {i}" for i in range(labels)]
        index = LabelTable(ids=names, titles=[None] * labels, train_counts=[1] * labels)
        return Network(TinyBackbone(options), decoder, ModelSection(backbone="tiny"), index)

    return build


@pytest.fixture
def small_model(tmp_path: Path) -> Callable[..., Path]:
    """Saves a random model of a configuration class with a word tokenizer:
    `small_model(LlamaConfig, num_key_value_heads=2)`.
    """

    def save(config: Any, **values: Any) -> Path:
        import torch
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import AutoModel, PreTrainedTokenizerFast

        torch.manual_seed(0)
        folder = tmp_path / config.model_type
        AutoModel.from_config(
            config(**SIZES | {"max_position_embeddings": 64} | values)
        ).save_pretrained(folder)
        plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
        plain.pre_tokenizer = pre_tokenizers.Whitespace()
        PreTrainedTokenizerFast(
            tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
        ).save_pretrained(folder)
        return folder

    return save


@pytest.fixture
def start_processes(tmp_path: Path) -> Iterator[Callable[..., list[subprocess.Popen[str]]]]:
    """Starts the command line in several processes with the environment that torch's launchers
    give them: `start_processes(2, "mig")`.
    """
    started: list[subprocess.Popen[str]] = []

    def start(count: int, *arguments: str) -> list[subprocess.Popen[str]]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        meeting = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
        }
        for rank in range(count):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "plant_cli", *arguments],
                    cwd=tmp_path,
                    env={**os.environ, **meeting, **own},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        return started[-count:]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def launch(
    start_processes: Callable[..., list[subprocess.Popen[str]]],
) -> Callable[..., list[tuple[int, str, str]]]:
    """Starts such processes and waits for all: exit code, stdout and stderr of each."""

    def wait(count: int, *arguments: str) -> list[tuple[int, str, str]]:
        processes = start_processes(count, *arguments)
        said = [process.communicate(timeout=300) for process in processes]
        return [
            (process.returncode, *texts) for process, texts in zip(processes, said, strict=True)
        ]

    return wait
