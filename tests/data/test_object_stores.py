"""Objects are copied here and sent whole; what a store says is told in four parts. S3 is a server of
moto, where it is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from plant_cli.api import ComponentError, DataError, SilentReporter, UsageError
from plant_cli.data.files import require_free
from plant_cli.data.lines import read_bytes
from plant_cli.data.object_stores import fetching, is_address, sending

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where outputs wait to be sent."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "plant-cli" / "unsent"


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """A server that behaves as S3 does."""
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield
    server.stop()


@pytest.fixture(params=["memory", "file", "s3"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a bucket in each kind of store."""
    if request.param == "s3":
        request.getfixturevalue("s3")
    name = f"{tmp_path}/bucket" if request.param == "file" else f"bucket-{uuid4().hex}"
    fsspec.filesystem(request.param).mkdir(name)
    return f"{request.param}://{name}"


def put(address: str, content: bytes) -> None:
    with fsspec.open(address, "wb") as stream:
        stream.write(content)


def get(address: str) -> bytes:
    with fsspec.open(address, "rb") as stream:
        content: bytes = stream.read()
    return content


def test_an_object_is_copied_and_another_sent(bucket: str, cache: Path) -> None:
    put(f"{bucket}/texts.csv", b"text\nfever\n")
    reporter = SilentReporter()
    with (
        sending(f"{bucket}/labels.csv", reporter, force=False) as output,
        fetching(f"{bucket}/texts.csv", reporter) as path,
    ):
        assert output is not None
        assert path is not None
        assert Path(path).name == "texts.csv"
        assert Path(path).read_bytes() == b"text\nfever\n"
        Path(output).write_bytes(b"done")
        Path(f"{output}.labels.txt").write_bytes(b"beside it")
    assert get(f"{bucket}/labels.csv") == b"done"
    assert get(f"{bucket}/labels.csv.labels.txt") == b"beside it"
    assert not Path(path).exists()
    assert not list(cache.iterdir())
    with (
        pytest.raises(UsageError, match="there already"),
        sending(f"{bucket}/labels.csv", reporter, force=False),
    ):
        pass


def test_what_a_failure_leaves_is_kept(bucket: str) -> None:
    def write() -> None:
        with sending(f"{bucket}/out.csv", SilentReporter(), force=False) as output:
            assert output is not None
            part = Path(f"{output}.part")
            if not part.exists():
                part.write_bytes(b"half")
                raise KeyboardInterrupt
            part.rename(output)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert not fsspec.url_to_fs(bucket)[0].exists(f"{bucket}/out.csv")
    write()
    assert get(f"{bucket}/out.csv") == b"half"


def test_what_is_missing_is_named(bucket: str) -> None:
    with pytest.raises(DataError) as caught, fetching(f"{bucket}/none.csv", SilentReporter()):
        pass
    assert caught.value.what == "the object cannot be read: there is no such object"
    assert caught.value.where == f"{bucket}/none.csv"
    nowhere = bucket.replace("bucket", "no-bucket") + "/out.csv"
    with (
        pytest.raises(DataError, match="there is no bucket"),
        sending(nowhere, SilentReporter(), force=True),
    ):
        pass


def test_packages_and_schemes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(UsageError, match="nothing opens addresses that begin with foo://"),
        fetching("foo://bucket/x.csv", SilentReporter()),
    ):
        pass
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(ComponentError) as caught, fetching("gs://b/x.csv", SilentReporter()):
        pass
    assert caught.value.what == "the package gcsfs, which opens gs://, is not installed"
    assert caught.value.todo == "pip install gcsfs"


def test_paths_are_left_alone(tmp_path: Path) -> None:
    assert not any(map(is_address, (None, "-", "C:/texts.csv", "a/b.csv", str(tmp_path))))
    with (
        fetching("texts.csv", SilentReporter()) as path,
        sending(None, SilentReporter(), force=False) as output,
    ):
        assert (path, output) == ("texts.csv", None)


def test_other_readers_and_writers_refuse_addresses() -> None:
    with pytest.raises(UsageError, match="no object store"):
        require_free(Path("s3://bucket/out.csv"), force=True)
    with pytest.raises(DataError) as caught:
        read_bytes(Path("s3://bucket/in.csv"), "a table")
    assert "copy it to this machine first" in caught.value.todo
