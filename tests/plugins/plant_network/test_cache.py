"""Hidden states on disk are those that the backbone would give."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plant_network import state_cache as cache
from plant_network.design import find_design
from plant_network.hardware import Hardware
from plant_network.reading import HiddenReader, LiveReader, make_tokens, read_in_turn
from plant_network.state_cache import CachedReader, StateCache, fingerprint_weights

from plant_cli.api import BackboneSpec, Choice, Interrupted, ModelSection, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.session import Session

TEXTS = [
    "a fever",
    "a cough and a fever and much more to be said about it all",
    "",
    "leg",
    "word " * 30,
]
FP32 = Hardware(device=torch.device("cpu"), dtype=torch.float32)
BF16 = Hardware(device=torch.device("cpu"), dtype=torch.bfloat16)
ROWS = np.array([4, 0, 2, 1])


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(reporter=SilentReporter(), run_path=tmp_path, folder=tmp_path / "finetune")


@pytest.fixture
def frozen(small_network: Callable[..., Any]) -> Any:
    network = small_network()
    network.freeze_backbone()
    return network


def opened(
    network: Any,
    session: Session,
    hardware: Hardware = FP32,
    limit: float = 1.0,
    data: str = "d",
    texts: Sequence[str] = TEXTS,
) -> HiddenReader:
    network.section = find_design(network.section, installed().resolve).section
    live = LiveReader(network, make_tokens(network, texts, SilentReporter(), "train"), hardware)
    return StateCache(session=session, data_hash=data, limit=limit, batch=2).open(live, "train")


@pytest.mark.parametrize(("hardware", "tolerance"), [(FP32, 1e-6), (BF16, 0.02)])
def test_cached_states_equal_live_ones(
    frozen: Any, session: Session, hardware: Hardware, tolerance: float
) -> None:
    cached = opened(frozen, session, hardware)
    assert isinstance(cached, CachedReader)
    live = LiveReader(frozen.eval(), cached.tokens, hardware)
    found, expected = cached.read(ROWS), live.read(ROWS)
    assert torch.equal(found.mask, expected.mask)
    assert found.hidden.dtype == hardware.dtype
    assert torch.allclose(
        found.hidden[found.mask].float(), expected.hidden[found.mask].float(), atol=tolerance
    )
    assert not found.hidden[~found.mask].any()
    assert (
        expected.hidden.dtype == found.hidden.dtype
    )  # what was chosen on cached states holds for live ones


def test_batches_that_are_read_ahead_are_the_same(frozen: Any, session: Session) -> None:
    cached = opened(frozen, session)
    assert isinstance(cached, CachedReader)
    batches = [np.array([row]) for row in range(len(TEXTS))]
    assert not cached.reads_ahead  # on a processor
    in_turn = list(read_in_turn(cached, batches))
    cached.reads_ahead = True
    ahead = list(read_in_turn(cached, batches))
    assert [rows.tolist() for rows, _ in ahead] == [rows.tolist() for rows in batches]
    for (_, found), (_, expected) in zip(ahead, in_turn, strict=True):
        assert torch.equal(found.hidden, expected.hidden)
        assert torch.equal(found.mask, expected.mask)


def folders(session: Session) -> list[Path]:
    return sorted((session.run_path / "cache").glob("hidden-*"))


def test_a_second_reader_reads_the_same_file(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does a stage that is given all options of the backbone, also those that the user did
    not name.
    """
    first = opened(frozen, session).read(ROWS).hidden
    monkeypatch.setattr(cache, "_fill", lambda *given: pytest.fail("filled again"))
    options = installed().resolve(BackboneSpec, Choice(name="tiny"))[1]
    frozen.section = ModelSection(
        backbone=Choice(name="tiny", options=options.model_dump(mode="json"))
    )
    assert torch.equal(opened(frozen, session).read(ROWS).hidden, first)


def test_another_corpus_precision_option_or_weight_has_another_cache(
    frozen: Any, session: Session
) -> None:
    whole = opened(frozen, session)
    half = opened(frozen, session, BF16)
    assert torch.allclose(half.read(ROWS).hidden.float(), whole.read(ROWS).hidden, atol=0.02)
    opened(frozen, session, data="other")
    with torch.no_grad():
        frozen.backbone_module.position.weight += 1
    opened(frozen, session)
    frozen.section = ModelSection(backbone=Choice(name="tiny", options={"dropout": 0.5}))
    opened(frozen, session)
    assert len(folders(session)) == 5


def test_states_of_documents_that_another_corpus_has_too_are_copied(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = opened(frozen, session)
    read: list[int] = []
    live = LiveReader.read
    monkeypatch.setattr(
        LiveReader, "read", lambda self, rows: read.extend(rows.tolist()) or live(self, rows)
    )
    after = opened(frozen, session, data="grown", texts=["something new", *reversed(TEXTS)])
    assert read == [0]
    assert (
        "hidden states of 5 of 6 documents of train are known from before" in session.reporter.notes
    )  # type: ignore[attr-defined]
    old, new = before.read(np.array([1, 3])), after.read(np.array([4, 2]))
    assert torch.equal(old.hidden, new.hidden)


def test_other_tokens_have_another_cache_although_they_are_as_many(
    frozen: Any, session: Session
) -> None:
    """Two runs that share a cache train on the titles of one corpus, which a vocabulary gives
    in another order, or divides otherwise.
    """
    frozen.section = find_design(frozen.section, installed().resolve).section
    states = StateCache(session=session, data_hash="d", limit=1.0, batch=2)
    for titles in (["fever", "broken leg"], ["broken leg", "fever"], ["broken", "leg fever"]):
        live = LiveReader(
            frozen.eval(),
            make_tokens(frozen, ["a cough", *titles], SilentReporter(), "train"),
            FP32,
        )
        rows = np.arange(3)
        found, expected = states.open(live, "train with titles").read(rows), live.read(rows)
        assert torch.allclose(found.hidden, expected.hidden * expected.mask.unsqueeze(2), atol=1e-6)


def test_a_single_number_of_the_backbone_is_noticed(small_network: Callable[..., Any]) -> None:
    """A user may go on training a few rows of an embedding, in the folder that the cache was
    filled from.
    """
    backbone = small_network().backbone_module
    before = fingerprint_weights(backbone)
    for parameter in backbone.parameters():
        with torch.no_grad():
            parameter.flatten()[-1] += 1e-3
        after = fingerprint_weights(backbone)
        assert after != before
        before = after


@pytest.mark.parametrize(
    "damage",
    [
        "flip",
        "flip in place",
        "halve",
        "empty",
        "remove",
        "[1, 2]",
        "half-written",
        '{"tokens": 1, "hidden": 16}',
    ],
)
def test_a_damaged_or_half_written_one_is_written_again(
    frozen: Any, session: Session, damage: str
) -> None:
    whole = opened(frozen, session).read(ROWS).hidden
    (folder,) = folders(session)
    path, mark = folder / "hidden.bin", folder / "done.json"
    content = path.read_bytes()
    if damage[0] in "[{":
        mark.write_text(damage)
    elif damage in ("remove", "half-written"):
        (path if damage == "remove" else mark).unlink()
    else:
        flipped = content[:9] + bytes([content[9] ^ 2]) + content[10:]
        before = path.stat()
        path.write_bytes({"halve": content[: len(content) // 2], "empty": b""}.get(damage, flipped))
        if damage == "flip in place":  # size and time say nothing
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert torch.equal(opened(frozen, session).read(ROWS).hidden, whole)
    assert path.read_bytes() == content
    assert isinstance(session.reporter, SilentReporter)
    told = [
        warning
        for warning in session.reporter.warnings
        if "the cached hidden states of train are made again" in warning
    ]
    assert bool(told) is (damage != "half-written")


def test_a_batch_is_written_while_the_next_is_read(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    read = LiveReader.read

    def fetch(numbers: torch.Tensor) -> Callable[[], torch.Tensor]:
        return lambda: done.append("written") or numbers  # type: ignore[func-returns-value]

    monkeypatch.setattr(
        LiveReader, "read", lambda reader, rows: done.append("read") or read(reader, rows)
    )  # type: ignore[func-returns-value]
    monkeypatch.setattr(cache, "fetch", fetch)
    assert isinstance(opened(frozen, session), CachedReader)
    assert done == ["read", "read", "written", "read", "written", "written"]


def test_what_is_too_large_or_learns_is_read_live(
    frozen: Any, session: Session, small_network: Callable[..., Any]
) -> None:
    assert isinstance(opened(frozen, session, limit=1e-9), LiveReader)
    assert "computed again each time" in session.reporter.notes[0]
    assert isinstance(opened(small_network(), session), LiveReader)
    assert not (session.run_path / "cache").exists()


def test_a_batch_is_as_large_as_memory_allows_and_an_interrupted_cache_counts_for_nothing(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, sizes = LiveReader.read, []
    monkeypatch.setattr(
        LiveReader, "read", lambda reader, rows: sizes.append(len(rows)) or read(reader, rows)
    )
    with pytest.raises(Interrupted):
        opened(frozen, replace(session, should_stop=lambda: True))
    assert isinstance(opened(frozen, session), CachedReader)
    assert sizes == [2, 2, 1]


def test_two_runs_that_share_a_cache_fill_it_one_after_the_other(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first, and takes what it left; without the lock it would empty
    the file that the first one fills.
    """
    other = replace(session, run_path=session.run_path / "other")
    other.run_path.mkdir()
    (session.run_path / "cache").mkdir()
    (other.run_path / "cache").symlink_to(session.run_path / "cache")
    fill, filled, second = cache._fill, [], []

    def fill_slowly(*given: Any) -> None:
        filled.append(given)
        if len(filled) == 1:
            second.append(threading.Thread(target=opened, args=(frozen, other)))
            second[0].start()
            time.sleep(0.3)
        fill(*given)

    monkeypatch.setattr(cache, "_fill", fill_slowly)
    first = opened(frozen, session)
    second[0].join()
    assert isinstance(first, CachedReader)
    assert len(filled) == 1


def test_a_full_disk_is_an_error_and_not_the_death_of_the_process(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    tokens = make_tokens(frozen, TEXTS, SilentReporter(), "train")
    folder = session.run_path / "cache" / "hidden"
    monkeypatch.setattr(cache, "STATES", str(full))  # an absolute path wins over the folder
    with pytest.raises(OSError, match="No space left") as caught:
        cache._fill(folder, LiveReader(frozen, tokens, FP32), session, "train", 2, "reader")
    assert caught.value.errno == errno.ENOSPC
    assert not (folder / "done.json").exists()


def test_texts_are_tokenised_once_for_each_backbone(
    frozen: Any, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen.section = find_design(frozen.section, installed().resolve).section
    kept = StateCache(session=session, data_hash="d", limit=1.0, batch=2)
    first = kept.tokenize(frozen, TEXTS, "train with titles", FP32)
    made = make_tokens(frozen, TEXTS, SilentReporter(), "train")
    monkeypatch.setattr(cache, "make_tokens", lambda *given: pytest.fail("tokenised again"))
    for tokens in (first, kept.tokenize(frozen, TEXTS, "train with titles", FP32)):
        assert [ids.tolist() for ids in tokens.ids] == [ids.tolist() for ids in made.ids]
        assert [spans.tolist() for spans in tokens.spans] == [
            spans.tolist() for spans in made.spans
        ]
        assert [ids.dtype for ids in tokens.ids] == [ids.dtype for ids in made.ids]
        assert list(tokens.dropped) == list(made.dropped)
    with pytest.raises(pytest.fail.Exception):
        kept.tokenize(frozen, TEXTS[:1], "train with titles", FP32)
    (folder,) = (session.run_path / "cache").glob("tokens-train-with-titles-*")
    (folder / "tokens.safetensors").write_bytes(b"damaged")
    with pytest.raises(pytest.fail.Exception):
        kept.tokenize(frozen, TEXTS, "train with titles", FP32)
