"""Hidden states of a frozen backbone, computed once and kept on disk: later epochs cost only the label attention."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import BackboneSpec, Interrupted, StageContext, TokenBatch
from plant_cli.base.files import read_json, write_json
from plant_cli.base.hashing import hash_json
from plant_cli.base.padding import TOKEN_MULTIPLE, round_up
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, LiveReader, Rows, lengths, sorted_batches
from plant_cli.recipe.components import write_out
from plant_cli.runs.process_copy import CACHE

DONE = "done.json"
STATES = "hidden.bin"
SAMPLED = 64  # numbers of each tensor that its fingerprint is made of


class CachedReader:
    """Reads hidden states from a memory-mapped file of 16-bit (or 32-bit) numbers (`plant_cli.model.reading.HiddenReader`).

    `filled_in` are the seconds that the backbone took to fill the file; None if it was there already.
    """

    def __init__(self, folder: Path, tokens: TokenBatch, hidden: int, hardware: Hardware, filled_in: float | None = None) -> None:
        self.tokens = tokens
        self.filled_in = filled_in
        self.hidden = hidden
        self.hardware = hardware
        self.sizes = lengths(tokens)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.states = np.memmap(folder / STATES, dtype=_stored(hardware), mode="r", shape=(int(self.starts[-1]), hidden))

    def read(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """See `plant_cli.model.reading.HiddenReader.read`."""
        longest = round_up(max(1, int(self.sizes[rows].max())), TOKEN_MULTIPLE)
        out = np.zeros((len(rows), longest, self.hidden), dtype=self.states.dtype)
        for place, row in enumerate(rows):
            out[place, : self.sizes[row]] = self.states[self.starts[row] : self.starts[row + 1]]
        mask = torch.from_numpy(np.arange(longest)[None, :] < self.sizes[rows][:, None])
        hidden = torch.from_numpy(out)
        if hidden.dtype == torch.int16:
            hidden = hidden.view(torch.bfloat16)
        return hidden.to(self.hardware.device), mask.to(self.hardware.device)


def cached_or_live(
    network: Network, tokens: TokenBatch, hardware: Hardware, context: StageContext, *, name: str, data_hash: str, limit_gb: float
) -> HiddenReader:
    """A cached reader for a frozen backbone whose states fit the limit, else a live one.

    The cache lies in the run folder, keyed by backbone, its weights, tokenizer, precision and data, so that stages and seeds that read
    alike share it; a half-written one is written again.
    """
    live = LiveReader(network, tokens, hardware)
    total = int(lengths(tokens).sum())
    size_gb = total * network.backbone.hidden_size * _stored(hardware).itemsize / 1e9
    if not network.backbone_is_frozen or total == 0:
        return live
    if size_gb > limit_gb:
        context.reporter.note(f"hidden states of {name} would take {size_gb:.1f} GB (limit {limit_gb:g} GB): computed anew in every epoch")
        return live
    key = hash_json(
        {
            "backbone": _write_backbone(network, context),
            "tokenizer": network.backbone.tokenizer_hash,
            "dtype": str(hardware.dtype),
            "data": data_hash,
            "split": name,
            "tokens": total,
            "weights": fingerprint_weights(network.backbone_module),
        }
    )
    folder = context.run_path / CACHE / f"hidden-{name}-{key[:16]}"
    done = folder / DONE
    filled_in = None
    if hardware.processes.any(not done.exists() or read_json(done, "the mark of a hidden-state cache")["tokens"] != total):
        began = time.monotonic()
        _fill(folder, live, network.backbone.hidden_size, context, name)
        filled_in = time.monotonic() - began
    return CachedReader(folder, tokens, network.backbone.hidden_size, hardware, filled_in)


def _write_backbone(network: Network, context: StageContext) -> dict[str, Any]:
    """The backbone with all its options, however few of them the user named: later stages of a run are given all of them."""
    chosen = network.section.backbone
    return {"name": chosen.name, **write_out(context.component(BackboneSpec, chosen)[1], None)}


def fingerprint_weights(module: nn.Module) -> str:
    """Hash of a few numbers from each tensor of a module: tells networks apart that have one description and other weights."""
    digest = hashlib.sha256()
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        flat = tensor.detach().flatten()
        sample = flat[:: max(1, flat.numel() // SAMPLED)][:SAMPLED].contiguous().cpu()
        digest.update(f"{name} {tuple(tensor.shape)}".encode() + sample.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _stored(hardware: Hardware) -> np.dtype[np.int16] | np.dtype[np.float32]:
    return np.dtype(np.int16) if hardware.dtype == torch.bfloat16 else np.dtype(np.float32)


@torch.no_grad()
def _fill(folder: Path, live: LiveReader, hidden: int, context: StageContext, name: str) -> None:
    processes = live.hardware.processes
    if processes.first:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / STATES).touch()
    processes.any(False)  # the file is there
    sizes = lengths(live.tokens)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    row_bytes = hidden * _stored(live.hardware).itemsize
    live.network.eval()
    progress = context.reporter.progress(f"reading {name} once with the frozen backbone", len(sizes), "documents")
    # written, not mapped: on a full disk a write is an error that can be told, a mapped page is the death of the process
    with (folder / STATES).open("r+b") as states, progress as task:
        for rows in processes.share(sorted_batches(sizes, 16)):
            if context.stopping:
                break
            encoded, _ = live.read(rows)
            for place, row in enumerate(rows):
                states.seek(int(starts[row]) * row_bytes)
                states.write(_to_numpy(encoded[place, : sizes[row]], live.hardware).tobytes())
            task.advance(len(rows) * processes.count)
        states.flush()
        os.fsync(states.fileno())
    if processes.any(context.stopping):
        raise Interrupted(
            "stopped while hidden states were being cached",
            where=str(folder),
            expected="a finished cache",
            todo="run the same command again with --resume: the cache is made anew",
        )
    write_json(folder / DONE, {"tokens": int(starts[-1]), "hidden": hidden})


def _to_numpy(states: Tensor, hardware: Hardware) -> np.ndarray[tuple[int, ...], np.dtype[np.int16] | np.dtype[np.float32]]:
    if hardware.dtype == torch.bfloat16:
        return states.to(torch.bfloat16).cpu().view(torch.int16).numpy()
    return states.float().cpu().numpy()
