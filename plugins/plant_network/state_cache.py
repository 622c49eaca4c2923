"""Tokens, and the hidden states of a frozen backbone, made once and kept on disk for later
epochs, stages and seeds.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import Reading, TokenBatch
from plant_cli.data.files import hash_json, hash_strings, remove
from plant_cli.data.tensors import read_tensors, write_tensors
from plant_cli.runs.damage import CACHE_MARK, is_whole, write_mark
from plant_cli.runs.folder import CACHE, READER
from plant_cli.runs.lock import hold_lock
from plant_cli.runs.session import Session
from plant_cli.scoring.top_labels import Room
from plant_network.assembly import Network
from plant_network.compute import TOKEN_MULTIPLE, fetch, round_up, send
from plant_network.hardware import Hardware
from plant_network.reading import (
    HiddenReader,
    LiveReader,
    Rows,
    lay_out_words,
    lengths,
    make_tokens,
    sorted_batches,
)

STATES, TOKENS = "hidden.bin", "tokens.safetensors"
STORED_DOCUMENTS = "documents.npy"  # a hash and the number of tokens of each document [N, 2]


class CachedReader:
    """Reads hidden states from a memory-mapped file of 16-bit (or 32-bit) numbers
    (`plant_network.reading.HiddenReader`).
    """

    def __init__(self, folder: Path, live: LiveReader, filled_in: float | None) -> None:
        self.tokens, self.words, self.hardware = live.tokens, live.words, live.hardware
        self.reads_ahead = (
            live.hardware.device.type == "cuda"
        )  # the processor is free while a card computes
        # seconds that the backbone took to fill the file; None if it was filled already
        self.filled_in = filled_in
        self.hidden = live.network.backbone.hidden_size
        self.sizes = lengths(self.tokens)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.states = np.memmap(
            folder / STATES,
            dtype=_stored(self.hardware),
            mode="r",
            shape=(int(self.starts[-1]), self.hidden),
        )

    def read(self, rows: Rows) -> Reading:
        """The reading of some documents."""
        longest = round_up(max(1, int(self.sizes[rows].max())), TOKEN_MULTIPLE)
        device = self.hardware.device
        kind = torch.int16 if self.states.dtype == np.int16 else torch.float32
        hidden = torch.empty(
            len(rows), longest, self.hidden, dtype=kind, pin_memory=device.type == "cuda"
        )
        out = hidden.numpy()
        for number, row in enumerate(rows):
            out[number, : self.sizes[row]] = self.states[self.starts[row] : self.starts[row + 1]]
            out[number, self.sizes[row] :] = 0
        if hidden.dtype == torch.int16:
            hidden = hidden.view(torch.bfloat16)
        mask = send(
            torch.from_numpy(np.arange(longest)[None, :] < self.sizes[rows][:, None]), device
        )
        return Reading.of(
            hidden.to(device, non_blocking=True), mask, lay_out_words(self.words, rows, mask)
        )


@dataclass(frozen=True, kw_only=True)
class StateCache:
    """The tokens and hidden states that a run keeps.

    The key of tokens is made of backbone, tokenizer and texts; that of hidden states of backbone,
    weights, tokenizer, precision, corpus and tokens (which may be titles of labels). So stages and
    seeds that read the same share them; half-written ones are written again. States of documents
    with the same tokens are taken over from another corpus, such as the one that has grown. Several
    runs may share one folder `cache` through links: one fills it at a time, and the others wait for
    it.
    """

    session: Session  # of the stage
    data_hash: str  # of the corpus
    limit: float  # disk that the states of one split may take, in GB
    batch: Room | int  # what the backbone reads at once; a number is one of documents
    hashes: dict[int, str] = field(
        default_factory=dict
    )  # of the frozen weights of a network, by its id

    def tokenize(
        self, network: Network, texts: Sequence[str], split: str, hardware: Hardware
    ) -> TokenBatch:
        """The tokens of the texts of a split, read from the cache or made and kept there."""
        backbone, chosen, reporter = (
            network.backbone,
            network.section.backbone,
            self.session.reporter,
        )
        if not texts:
            return make_tokens(network, texts, reporter, split)
        options = {"name": chosen.name, **chosen.options, "longest": backbone.max_length}
        key = hash_json(
            {
                "backbone": options,
                "tokenizer": backbone.tokenizer_hash,
                "texts": hash_strings(texts),
            }
        )
        folder = self.session.run_path / CACHE / f"tokens-{split.replace(' ', '-')}-{key[:16]}"
        with self._lock(folder, f"the tokens of {split}", hardware) as missing:
            if not missing:
                arrays = read_tensors(
                    folder / TOKENS,
                    "the tokens of a split",
                    "remove its folder and run the command again",
                    "np",
                )[0]
                ids, spans = (
                    np.split(arrays[name], np.cumsum(arrays["sizes"])[:-1])
                    for name in ("ids", "spans")
                )
                return TokenBatch(ids=ids, spans=spans, dropped=arrays["dropped"].tolist())
            tokens = make_tokens(network, texts, reporter, split)
            if hardware.processes.first:
                remove(folder)
                folder.mkdir(parents=True)
                arrays = {"ids": np.concatenate(tokens.ids), "spans": np.concatenate(tokens.spans)}
                arrays |= {
                    "sizes": lengths(tokens),
                    "dropped": np.asarray(tokens.dropped, dtype=np.int64),
                }
                write_tensors(folder / TOKENS, arrays, framework="np")
                write_mark(folder / CACHE_MARK)
            hardware.processes.any(False)  # the tokens are there
        return tokens

    def open(self, live: LiveReader, split: str) -> HiddenReader:
        """A cached reader for a frozen backbone whose states fit the limit, else the live one.

        Raises:
            Interrupted: the user stopped the command while the cache was filled.
        """
        network, hardware = live.network, live.hardware
        total = int(lengths(live.tokens).sum())
        size_gb = total * network.backbone.hidden_size * _stored(hardware).itemsize / 1e9
        if not network.backbone_is_frozen or total == 0:
            return live
        if size_gb > self.limit:
            self.session.reporter.note(
                f"hidden states of {split} would take {size_gb:.1f} GB (limit {self.limit:g} GB): "
                "they are computed again each time"
            )
            return live
        chosen = network.section.backbone
        if (
            id(network) not in self.hashes
        ):  # once for all splits: those of a large model take many seconds
            self.hashes[id(network)] = fingerprint_weights(network.backbone_module)
        reader = {
            "backbone": {"name": chosen.name, **chosen.options},
            "tokenizer": network.backbone.tokenizer_hash,
            "dtype": str(hardware.dtype),
            "weights": self.hashes[id(network)],
        }
        key = hash_json(
            {**reader, "data": self.data_hash, "split": split, "tokens": hash_tokens(live.tokens)}
        )
        folder = self.session.run_path / CACHE / f"hidden-{split}-{key[:16]}"
        filled_in = None
        with self._lock(folder, f"the cached hidden states of {split}", hardware) as missing:
            if missing:
                began = time.monotonic()
                _fill(folder, live, self.session, split, self.batch, hash_json(reader))
                filled_in = time.monotonic() - began
        return CachedReader(folder, live, filled_in)

    @contextmanager
    def _lock(self, folder: Path, content: str, hardware: Hardware) -> Iterator[bool]:
        """Whether a folder must be filled, while other commands wait. The first process holds
        the lock for its group.
        """
        first, session = hardware.processes.first, self.session
        with ExitStack() as locks:
            if first:
                folder.parent.mkdir(parents=True, exist_ok=True)
                locks.enter_context(
                    hold_lock(
                        folder.parent,
                        "filling the cache",
                        wait=math.inf,
                        should_stop=session.should_stop,
                    )
                )
            yield hardware.processes.any(
                first and not is_whole(folder / CACHE_MARK, content, session.reporter.warn)
            )


def hash_tokens(tokens: TokenBatch) -> str:
    """Hash of the token ids of documents, each preceded by their number."""
    digest = hashlib.sha256()
    for ids in tokens.ids:
        digest.update(
            len(ids).to_bytes(8, "little") + np.ascontiguousarray(ids, dtype="<i8").tobytes()
        )
    return digest.hexdigest()


def fingerprint_weights(module: nn.Module) -> str:
    """Hash of all tensors of a module."""
    digest = hashlib.sha256()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        numbers = tensor.detach().flatten().contiguous().cpu().view(torch.uint8).numpy()
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(numbers.data)
    return digest.hexdigest()


def _stored(hardware: Hardware) -> np.dtype[np.int16] | np.dtype[np.float32]:
    return np.dtype(np.int16) if hardware.dtype == torch.bfloat16 else np.dtype(np.float32)


def _hash_documents(tokens: TokenBatch) -> Rows:
    """A hash of the tokens of each document [N]."""
    parts = (
        hashlib.blake2b(np.ascontiguousarray(ids, dtype="<i8").tobytes(), digest_size=8).digest()
        for ids in tokens.ids
    )
    return np.array([int.from_bytes(part, "little", signed=True) for part in parts], dtype=np.int64)


def _find_known(
    cache: Path, reader: str, documents: Rows, warn: Callable[[str], None]
) -> dict[int, tuple[Path, int]]:
    """Of rows whose states the same reader has left elsewhere: the folder, and the number of
    their first token in it.
    """
    places: dict[int, tuple[Path, int]] = {}
    for folder in sorted(
        path.parent
        for path in cache.glob(f"hidden-*/{READER}")
        if (path.parent / CACHE_MARK).exists()
    ):
        if (folder / READER).read_text() == reader and is_whole(
            folder / CACHE_MARK, "cached hidden states", warn
        ):
            hashes, sizes = np.load(folder / STORED_DOCUMENTS).T
            places |= zip(
                hashes.tolist(),
                ((folder, start) for start in (np.cumsum(sizes) - sizes).tolist()),
                strict=True,
            )
    return {row: places[known] for row, known in enumerate(documents.tolist()) if known in places}


@torch.no_grad()
def _fill(
    folder: Path, live: LiveReader, session: Session, name: str, batch: Room | int, reader: str
) -> None:
    """Write the states of all documents: those that are known elsewhere are copied, the others
    read by the backbone.
    """
    processes, hidden = live.hardware.processes, live.network.backbone.hidden_size
    sizes, documents = lengths(live.tokens), _hash_documents(live.tokens)
    if processes.first:
        remove(folder)
    known = _find_known(folder.parent, reader, documents, session.reporter.warn)
    processes.any(False)  # all have looked
    if processes.first:
        folder.mkdir(parents=True)
        (folder / STATES).touch()
    processes.any(False)  # the file is there
    unknown = np.setdiff1d(np.arange(len(sizes)), np.array([*known], dtype=np.int64))
    if known:
        session.reporter.note(
            f"hidden states of {len(known):,} of {len(sizes):,} documents of {name} are known "
            "from before"
        )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    row_bytes = hidden * _stored(live.hardware).itemsize
    live.network.eval()
    progress = session.reporter.progress(
        f"reading {name} once with the frozen backbone", len(unknown), "documents"
    )
    # written, not mapped: on a full disk a write raises an error, and a mapped page ends the
    # process
    with (folder / STATES).open("r+b") as states, progress as task:

        def write(rows: Rows, fetched: Callable[[], Tensor]) -> None:
            numbers = fetched()
            for number, row in enumerate(rows):
                states.seek(int(starts[row]) * row_bytes)
                part = numbers[number, : sizes[row]]
                states.write(
                    (part.view(torch.int16) if part.dtype == torch.bfloat16 else part)
                    .numpy()
                    .tobytes()
                )
            task.advance(len(rows) * processes.count)

        for row, (place, start) in known.items() if processes.first else ():
            with (place / STATES).open("rb") as source:
                source.seek(start * row_bytes)
                states.seek(int(starts[row]) * row_bytes)
                states.write(source.read(int(sizes[row]) * row_bytes))
        waiting: tuple[Rows, Callable[[], Tensor]] | None = (
            None  # the batch before, which comes from a card while the next is read
        )
        for rows in (
            unknown[batch_rows]
            for batch_rows in processes.share(sorted_batches(sizes[unknown], batch))
        ):
            if session.should_stop():
                break
            fetched = fetch(live.read(rows).hidden.to(live.hardware.dtype))
            if waiting is not None:
                write(*waiting)
            waiting = rows, fetched
        if waiting is not None:
            write(*waiting)
        states.flush()
        os.fsync(states.fileno())
    session.check(
        "while hidden states were being cached",
        "a finished cache: it is filled again",
        processes.any,
    )
    if processes.first:
        np.save(folder / STORED_DOCUMENTS, np.stack([documents, sizes], axis=1))
        (folder / READER).write_text(reader)
        write_mark(folder / CACHE_MARK)
    processes.any(False)  # the mark is there
