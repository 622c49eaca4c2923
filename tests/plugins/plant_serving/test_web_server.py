"""The process: its address, models that are replaced, its feedback file, and its end."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from builders import run_at
from laboratory import CLINIC
from plant_serving.feedback_file import FeedbackFile
from plant_serving.served_models import open_models, renew
from plant_serving.web_server import bind, is_loopback, run_server

from plant_cli.api import PlantError, Request, SilentReporter
from plant_cli.registry import installed


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("plant.org", False),
    ],
)
def test_which_addresses_are_this_machine_alone(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


def test_answers_are_sent_without_a_wait_for_more() -> None:
    """With Nagle's algorithm an answer on an open connection takes 40 ms longer; asyncio turns
    it off where the protocol is named.
    """
    with bind("127.0.0.1", 0) as opened:
        assert opened.proto == socket.IPPROTO_TCP


def asked(run: Path, **options: Any) -> Any:
    return run_at(run, "serve", flags={"serve": options})


@pytest.mark.parametrize(
    ("options", "what", "todo"),
    [
        (
            {"host": "0.0.0.0"},
            "other machines could use the server without a token",
            "export PLANT_TOKEN=$(openssl rand -hex 16)",
        ),
        ({"host": "no such host", "open": True}, "the address is not known", "leave --host out"),
        (
            {"runs": ["{run}", "{run}/"]},
            "two runs are called 'clinic'",
            "rename one of the folders",
        ),
        ({"runs": ["{run}/nothing"]}, "there is no run in", "start one with"),
        (
            {"feedback": "{run}/none/f.jsonl"},
            "the feedback cannot be written: No such file",
            "make the folder",
        ),
    ],
)
def test_what_cannot_be_served_is_told_before_it_begins(
    scorers_run: Path, options: Any, what: str, todo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANT_TOKEN", raising=False)
    placed = json.loads(json.dumps({"port": 0, **options}).replace("{run}", str(scorers_run)))
    with pytest.raises(PlantError, match=re.escape(what)) as caught:
        asked(scorers_run, **placed)
    assert todo in caught.value.todo
    assert caught.value.where
    assert caught.value.expected


def test_a_port_in_use_and_a_second_server_on_one_file(scorers_run: Path, tmp_path: Path) -> None:
    with (
        bind("127.0.0.1", 0) as taken,
        pytest.raises(PlantError, match="the server cannot be reached at this address") as caught,
    ):
        asked(scorers_run, port=taken.getsockname()[1])
    assert caught.value.exit_code == 6
    first = FeedbackFile(tmp_path / "f.jsonl")
    with pytest.raises(PlantError, match="another server writes to this feedback file"):
        asked(scorers_run, port=0, feedback=str(tmp_path / "f.jsonl"))
    first.close()
    FeedbackFile(tmp_path / "f.jsonl").close()


def test_a_line_that_was_cut_off_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"a":1}\n{"b":')
    file = FeedbackFile(path)
    file.append([{"c": "ä"}, {"d": 2}])
    file.close()
    assert path.read_text("utf-8") == '{"a":1}\n{"b":\n{"c": "ä"}\n{"d": 2}\n'


@pytest.mark.parametrize("moves", ["rename", "remove", "replace"])
def test_a_feedback_file_that_is_moved_is_begun_anew(tmp_path: Path, moves: str) -> None:
    path, kept, log = tmp_path / "f.jsonl", tmp_path / "f-1.jsonl", list[str]()
    file = FeedbackFile(path, log.append)
    file.append([{"a": 1}])
    if moves == "remove":
        path.unlink()
    else:
        path.rename(kept)
    if moves == "replace":
        path.write_text('{"other": 1}')  # without the end of its line
    file.append([{"b": 2}])
    with pytest.raises(PlantError, match="another server writes"):
        FeedbackFile(path)
    file.close()
    before = '{"other": 1}\n' if moves == "replace" else ""
    assert path.read_text() == before + '{"b": 2}\n'
    assert moves == "remove" or kept.read_text() == '{"a": 1}\n'
    assert [line.partition(";")[0] for line in log] == ["the feedback file was moved or removed"]


def test_a_file_that_is_moved_while_it_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes the moved file away at once takes no decision with it."""
    path = tmp_path / "f.jsonl"
    file, sync = FeedbackFile(path), os.fsync

    def move(handle: int) -> None:
        monkeypatch.setattr("os.fsync", sync)
        path.unlink()

    monkeypatch.setattr("os.fsync", move)
    file.append([{"a": 1}])
    file.close()
    assert path.read_text() == '{"a": 1}\n'


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (os.mkfifo, "this is no regular file"),
        (Path.mkdir, "this is no regular file"),
        (lambda path: path.symlink_to("/dev/full"), "this is no regular file"),
        (lambda path: path.symlink_to("none/f.jsonl"), "No such file or directory"),
    ],
)
def test_what_is_no_file_takes_no_feedback(tmp_path: Path, place: Any, reason: str) -> None:
    path = tmp_path / "f.jsonl"
    file = FeedbackFile(path)
    path.unlink()
    place(path)
    with pytest.raises(PlantError, match=f"the feedback was not stored: .*{reason}") as caught:
        file.append([{"a": 1}])
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(PlantError, match=f"the feedback cannot be written: {reason}"):
        FeedbackFile(path)
    path.rmdir() if path.is_dir() else path.unlink()
    file.append([{"a": 2}])
    file.close()
    assert path.read_text() == '{"a": 2}\n'


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FeedbackFile(tmp_path / "f.jsonl")
    file.append([{"a": 1}])
    monkeypatch.setattr(
        "os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(PlantError, match="the feedback was not stored: No space left on device"):
        file.append([{"b": 2}])
    file.close()
    assert file.path.read_text() == '{"a": 1}\n'


def test_a_model_is_replaced_when_its_run_was_trained_again(
    scorers_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, reporter = tmp_path / "copy", SilentReporter()
    shutil.copytree(scorers_run, run)
    (model,) = open_models(
        Request(registry=installed(), reporter=reporter), [run], None, 0.0
    ).values()
    before = model.loaded
    renew([model])
    assert model.loaded is before
    run_at(
        run, "finetune", *CLINIC, "finetune.network=false", "finetune.scorers=[words]", force=True
    )
    renew([model])
    assert (before.parts, model.loaded.parts) == (
        ["words", "titles", "neighbours", "linear"],
        ["words"],
    )
    assert model.score(["fever"], 3).result.result(20)
    now = model.loaded
    (run / "finetune" / "stage.json").write_text("{")
    renew([model], force=True)
    assert model.loaded is now
    assert len(reporter.notes) == 1
    assert "the new model could not be loaded, and the one before goes on" in reporter.warnings[-1]
    monkeypatch.setattr(model, "reload", lambda force: [][0])
    renew([model])
    assert reporter.warnings[-1].endswith("the one before goes on: IndexError")
    model.close()


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "https://a.org/",
        "https://a.org/path",
        "https://A.org",
        "a.org",
        "http://a.org:80",
    ],
)
def test_only_an_origin_may_be_let_in(scorers_run: Path, origin: str) -> None:
    with pytest.raises(PlantError, match="this is no origin of a page") as caught:
        asked(scorers_run, port=0, cors=[origin])
    assert caught.value.where == f"--cors {origin}"


def test_a_server_looks_for_cycles_as_often_as_python_does() -> None:
    """Commands look seldom (`plant_cli.main`): what piled up between took 10 MB for each 500
    requests.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 10, 10)
    try:
        opened = bind("127.0.0.1", 0)
        failing = pytest.raises(ZeroDivisionError)
        with failing, pytest.MonkeyPatch.context() as patch:
            patch.setattr("plant_serving.web_server._Process.run", lambda *_, **__: 1 / 0)
            run_server(lambda *_: None, opened, 1.0, lambda force: None, watch=False)  # type: ignore[arg-type]
        assert gc.get_threshold()[0] < 2_000
    finally:
        gc.set_threshold(*before)


@pytest.mark.slow
def test_a_server_answers_what_it_began_and_ends_quietly(started: Any, tmp_path: Path) -> None:
    server = started("--feedback", str(tmp_path / "f.jsonl"), "--watch")
    secret = "unmistakable words of a patient"
    statuses: list[int] = []

    def ask() -> None:
        statuses.append(
            httpx.post(
                f"{server.address}/api/suggest", json={"texts": [secret] * 1000}, timeout=60
            ).status_code
        )

    threads = [threading.Thread(target=ask) for _ in range(4)]
    with httpx.Client(base_url=server.address) as client:
        assert client.post(
            "/api/feedback",
            json={
                "document": {"text": secret},
                "decisions": [{"label": "x", "decision": "accept"}],
            },
        ).json()
        assert (
            client.post(
                "/api/suggest",
                content=b"{" + secret.encode(),
                headers={"content-type": "application/json"},
            ).status_code
            == 400
        )
        server.process.send_signal(signal.SIGHUP)
        for thread in threads:
            thread.start()
        while "plant_waiting 5" not in client.get("/metrics").text:  # this one, too
            assert all(thread.is_alive() for thread in threads)
    server.process.terminate()
    for thread in threads:
        thread.join(60)
    said = server.process.communicate(timeout=60)[1]
    assert server.process.returncode == 0
    assert statuses == [200] * 4
    assert "clinic: the model was loaded anew, 12 labels" in said
    assert "the server ended" in said
    assert secret.split()[0] not in server.first + said


NO_REQUESTS = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # the start of TLS
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\nhost: localhost\r\n\r\n",
    b"GET /api/health HTTP/1.1\r\nhost: localhost\r\nx: " + b"secret" * 20_000 + b"\r\n\r\n",
    b"POST /api/suggest HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nsecret\r\n",
    b"POST /api/suggest HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nsecret",
    b"POST /api/suggest HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nsecret",
    b"GET /" + b"secret" * 20_000,
    b"HEAD / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nsecret\r\n",
    b"POST / HTTP/1.1\r\nhost: evil.example\r\ntransfer-encoding: chunked\r\n\r\nsecret\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
]


@pytest.mark.slow
def test_what_is_no_request_ends_its_own_connection(started: Any) -> None:
    server = started("--timeout", "2")
    lazy = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    lazy.sendall(b"GET / HTTP/1.1\r\nhost: local")
    for content in NO_REQUESTS:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            raw.sendall(content)
            raw.shutdown(socket.SHUT_WR)
            answer = raw.recv(10_000)
            assert not answer.startswith(b"HTTP/1.1 5"), content[:60]
    assert httpx.get(f"{server.address}/api/health").json()["status"] == "ok"
    assert lazy.recv(100) == b""
    assert re.fullmatch(r"the server ended; requests: \d+, texts: 0\n", server.end())


@pytest.mark.slow
def test_a_body_that_never_ends_is_given_up(started: Any) -> None:
    server = started("--timeout", "1")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        raw.sendall(b"POST /api/suggest HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
        assert raw.recv(10_000).startswith(b"HTTP/1.1 503")
