"""Counting by dense matrix products, for GPUs, which multiply matrices faster than they follow indices."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array

from plant_cli.relevance.counting import Ints, Pairs, Terms, count_margins

EXACT = 1 << 24  # a float32 sum of ones is exact below it: more documents than this are never multiplied at once
BYTES_PER_PAIR = 32  # of a dense block: product, sum, and the places of those that are not zero
# bf16 holds 0 and 1, and its products are added up in fp32; only since torch 2.8 are they also given back in fp32.
HAS_WIDE_PRODUCTS = hasattr(torch.ops.aten.mm, "dtype")


class DenseCounting:
    """Counts (see `Counting`) by products of dense 0/1 matrices on a device; they are made there, chunk by chunk of documents.

    Args:
        terms: words of the N training documents.
        gold: csr [N, L] of 0/1, labels of the same documents.
        device: where to multiply.
        memory: bytes on the device for the dense matrices; the indices need more.
    """

    def __init__(self, terms: Terms, gold: csr_array, *, device: torch.device, memory: int) -> None:
        by_label = csr_array(gold.T.astype(np.int32))
        self.margins = count_margins(terms, by_label, with_occurrences=False)
        self.pair_bounds: Ints = np.full(by_label.shape[0], max(1, len(terms.words)))
        self.block_pairs = memory // (2 * BYTES_PER_PAIR)
        wide = HAS_WIDE_PRODUCTS and device.type == "cuda"
        self._product_type = torch.bfloat16 if wide else torch.float32
        row_bytes = max(1, len(terms.words)) * self._product_type.itemsize
        self._chunk = max(1, min(EXACT - 1, memory // (2 * row_bytes)))
        self._words, self._labels = _Indices(terms.occurrences, device), _Indices(by_label, device)

    def count(self, start: int, stop: int) -> Pairs:
        """See `Counting.count`."""
        labels = self._labels.fill(start, stop, self._product_type)
        total = torch.zeros((stop - start, len(self.margins.words)), dtype=torch.int32, device=labels.device)
        for first in range(0, self.margins.n_docs, self._chunk):
            words = self._words.fill(first, min(first + self._chunk, self.margins.n_docs), self._product_type)
            total += self._multiply(labels[:, first : first + self._chunk], words).to(torch.int32)
        places = total.nonzero(as_tuple=True)
        lengths = (total > 0).sum(dim=1).cpu().numpy()
        return Pairs(
            start=start,
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            word=places[1].to(torch.int32).cpu().numpy(),
            both=total[places].cpu().numpy(),
        )

    def _multiply(self, labels: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        if self._product_type == torch.bfloat16:
            return torch.mm(labels, words, out_dtype=torch.float32)
        return torch.mm(labels, words)


class _Indices:
    """Where a sparse 0/1 matrix has its ones, on a device."""

    def __init__(self, matrix: csr_array, device: torch.device) -> None:
        self._ends = matrix.indptr.astype(np.int64)
        self._columns = torch.from_numpy(matrix.indices.astype(np.int32)).to(device)
        self._width = matrix.shape[1]

    def fill(self, start: int, stop: int, dtype: torch.dtype) -> torch.Tensor:
        """Rows `start` to `stop` as a dense matrix."""
        columns = self._columns[int(self._ends[start]) : int(self._ends[stop])].long()
        lengths = torch.from_numpy(np.diff(self._ends[start : stop + 1])).to(columns.device)
        rows = torch.repeat_interleave(torch.arange(stop - start, device=columns.device), lengths)
        dense = torch.zeros((stop - start, self._width), dtype=dtype, device=columns.device)
        dense[rows, columns] = 1
        return dense
