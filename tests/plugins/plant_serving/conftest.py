"""A server over a small run of scorers, asked without a socket."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import run_at
from laboratory import CLINIC
from plant_serving.application import build_server
from plant_serving.document_queue import Order
from plant_serving.feedback_file import FeedbackFile
from plant_serving.front_door import Limits
from plant_serving.served_models import ServedModel, open_models
from plant_serving.served_queues import ServedQueues
from plant_serving.service import Service
from starlette.testclient import TestClient

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed

LIMITS = {"max_bytes": 100_000, "timeout": 20.0, "concurrency": 8}


@pytest.fixture(scope="session")
def scorers_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run `clinic`: scorers of 12 labels."""
    path = tmp_path_factory.mktemp("served") / "clinic"
    run_at(path, "finetune", *CLINIC, "finetune.network=false")
    return path


@pytest.fixture(scope="session")
def models(scorers_run: Path) -> Iterator[dict[str, ServedModel]]:
    opened = open_models(
        Request(registry=installed(), reporter=SilentReporter()), [scorers_run], None, 0.0
    )
    yield opened
    for model in opened.values():
        model.close()


@pytest.fixture
def feedback(tmp_path: Path) -> Iterator[FeedbackFile]:
    file = FeedbackFile(tmp_path / "feedback.jsonl")
    yield file
    file.close()


@pytest.fixture
def proposals(tmp_path: Path) -> Iterator[FeedbackFile]:
    file = FeedbackFile(tmp_path / "feedback.proposals.jsonl")
    yield file
    file.close()


@pytest.fixture
def serve(
    models: dict[str, ServedModel], feedback: FeedbackFile, proposals: FeedbackFile
) -> Iterator[Callable[..., TestClient]]:
    """A client of a server: `serve(token="…", max_bytes=10)`."""
    log: list[str] = []
    opened: list[ServedQueues] = []

    def start(
        *,
        hosts: Any = None,
        token: str | None = None,
        keeps: bool = True,
        origins: Sequence[str] = (),
        order: Order = "doubt",
        people: int = 1,
        **limits: Any,
    ) -> TestClient:
        kept = feedback if keeps else None
        queues = ServedQueues(
            next(iter(models.values())), kept and kept.path, order=order, people=people
        )
        opened.append(queues)
        service = Service(
            models=models, feedback=kept, queues=queues, proposals=proposals if keeps else None
        )
        server = build_server(
            service,
            Limits(**{**LIMITS, **limits}),
            hosts=hosts,
            token=token,
            log=log.append,
            origins=origins,
        )
        client = TestClient(server, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        client.log, client.service = log, service  # type: ignore[attr-defined]
        return client

    yield start
    for queues in opened:
        queues.close()


class ServerProcess:
    """`plant serve` as a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "plant_cli", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.first = self.process.stderr.readline()
        found = re.match(r"(http://127.0.0.1:(\d+)) ", self.first)
        assert found, self.first + self.process.stderr.read()
        self.address, self.port = found[1], int(found[2])

    def end(self) -> str:
        """End it; what it wrote to stderr since it started."""
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


@pytest.fixture
def started(scorers_run: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Start a server: `started("--token", "…")`."""
    servers: list[ServerProcess] = []

    def start(*arguments: str) -> ServerProcess:
        servers.append(ServerProcess(scorers_run.parent, scorers_run.name, *arguments))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.end()


@pytest.fixture
def client(serve: Callable[..., TestClient]) -> TestClient:
    return serve()
