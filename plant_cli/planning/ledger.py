"""Counting what a computation holds and does, one operation after the other, on tensors that have shapes but no storage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

NOTABLE = 1.01
"""A new peak is checked against forgotten garbage only when it is this much higher: collecting garbage takes time."""


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes held at each moment, beside tensors that were there before, and floating-point operations of products done so far.

    Fake tensors have no values, so what depends on values must be told: how many positions of a gradient over labels are not zero.

    Args:
        known: tensors that were there before.
        chosen: labels of a document whose gradient is not zero.
    """

    def __init__(self, known: Iterable[Tensor], chosen: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.operations = 0
        self.chosen = chosen
        self._seen: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary({t.untyped_storage(): 0 for t in known})

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.nonzero.default and isinstance(args[0], FakeTensor):
            return torch.arange(min(self.chosen, args[0].numel()), device=args[0].device).unsqueeze(1)
        result = function(*args, **(kwargs or {}))
        count = flop_registry.get(function.overloadpacket)
        if count is not None:
            self.operations += count(*args, **(kwargs or {}), out_val=result)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._enter(tensor.untyped_storage())
        if self.now > NOTABLE * self.peak:
            gc.collect()  # what only a reference cycle still holds would be freed long before on real tensors
        self.peak = max(self.peak, self.now)
        return result

    def _enter(self, storage: Any) -> None:
        if storage not in self._seen:
            size = storage.nbytes()
            self._seen[storage] = size
            self.now += size
            weakref.finalize(storage, self._leave, size)

    def _leave(self, size: int) -> None:
        self.now -= size


@contextmanager
def keeping_books(known: Iterable[Tensor], chosen: int) -> Iterator[Ledger]:
    """A ledger over the block."""
    gc.collect()
    gc.freeze()  # only what the block itself makes is looked through
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # nobody knows how many operations torch's whole layers take
    try:
        with Ledger(known, chosen) as ledger:
            yield ledger
    finally:
        gc.unfreeze()
        torch.backends.mha.set_fastpath_enabled(fast)
