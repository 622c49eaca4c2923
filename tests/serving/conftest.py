"""A server over a small run of scorers, asked without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import run_at
from laboratory import CLINIC
from starlette.testclient import TestClient

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.serving.application import build_server
from plant_cli.serving.feedback_file import FeedbackFile
from plant_cli.serving.front_door import Limits
from plant_cli.serving.served_models import ServedModel, open_models
from plant_cli.serving.service import Service

LIMITS = {"max_bytes": 100_000, "timeout": 20.0, "concurrency": 8}


@pytest.fixture(scope="session")
def scorers_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run `clinic`: scorers of 12 labels."""
    path = tmp_path_factory.mktemp("served") / "clinic"
    run_at(path, "finetune", *CLINIC, "finetune.network=false")
    return path


@pytest.fixture(scope="session")
def models(scorers_run: Path) -> Iterator[dict[str, ServedModel]]:
    opened = open_models(Request(registry=installed(), reporter=SilentReporter()), [scorers_run], None, 0.0)
    yield opened
    for model in opened.values():
        model.close()


@pytest.fixture
def feedback(tmp_path: Path) -> Iterator[FeedbackFile]:
    file = FeedbackFile(tmp_path / "feedback.jsonl")
    yield file
    file.close()


@pytest.fixture
def serve(models: dict[str, ServedModel], feedback: FeedbackFile) -> Callable[..., TestClient]:
    """A client of a server: `serve(token="…", max_bytes=10)`."""
    log: list[str] = []

    def start(*, hosts: Any = None, token: str | None = None, keeps: bool = True, **limits: Any) -> TestClient:
        service = Service(models=models, feedback=feedback if keeps else None)
        server = build_server(service, Limits(**{**LIMITS, **limits}), hosts=hosts, token=token, log=log.append)
        client = TestClient(server, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        client.log, client.service = log, service  # type: ignore[attr-defined]
        return client

    return start


@pytest.fixture
def client(serve: Callable[..., TestClient]) -> TestClient:
    return serve()
