"""How the numerics use a machine: threads, padded sizes, kernels."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TypeVar

import torch
from torch import Tensor

TOKEN_MULTIPLE = 16  # the number of positions of a batch of texts is a multiple of this
LABEL_MULTIPLE = (
    64  # the numbers of labels and of positions in a product of both are multiples of this
)


def round_up(size: int, multiple: int) -> int:
    """The smallest multiple that is not below a size."""
    return -(-size // multiple) * multiple


def uses_triton(device: str) -> bool:
    """Whether Triton's kernels compute on a device type ("cuda", "cpu"): on a graphics card,
    where Triton is installed.
    """
    return device == "cuda" and find_spec("triton") is not None


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the processor on a device; on a card without waiting for the work before it."""
    return (
        tensor.pin_memory().to(device, non_blocking=True)
        if device.type == "cuda" and tensor.numel()
        else tensor.to(device)
    )


def fetch(tensor: Tensor) -> Callable[[], Tensor]:
    """Begin to bring a tensor to the processor; the result waits for it. A card computes
    meanwhile what it is given next.
    """
    if tensor.device.type != "cuda":
        return tensor.cpu
    beside = torch.cuda.Stream(tensor.device)  # type: ignore[no-untyped-call]
    beside.wait_stream(torch.cuda.current_stream(tensor.device))
    with torch.cuda.stream(beside):
        here = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(
            tensor, non_blocking=True
        )
        tensor.record_stream(beside)
        done = beside.record_event()

    def wait() -> Tensor:
        done.synchronize()
        return here

    return wait


Item = TypeVar("Item")
Result = TypeVar("Result")
CPU = torch.device("cpu")


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Let torch, and `each`, work only in the calling thread; torch's counters see no other
    thread.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of this thread, and of those that start from now on
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def each(
    work: Callable[[Item], Result], items: Sequence[Item], device: torch.device = CPU
) -> Iterator[Result]:
    """The results of `work` on each item, in their order, under the caller's autocast, gradient and
    inference mode.

    On a processor each thread of torch works on an item of its own: sharing one item's small
    operations among threads, as torch does, takes longer than it saves. Fewer items than threads,
    and items on other devices, come one after the other.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or not 1 < threads <= len(items):
        yield from map(work, items)
        return
    autocast = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def one(item: Item) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            return work(item)

    with (
        in_one_thread(),
        ThreadPoolExecutor(threads, initializer=_begin, initargs=autocast) as pool,
    ):
        waiting: deque[Future[Result]] = deque()
        rest = iter(items)
        waiting.extend(pool.submit(one, item) for item in islice(rest, 2 * threads))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(one, item) for item in islice(rest, 1))
            yield result


def _begin(autocast: bool, dtype: torch.dtype) -> None:
    torch.set_num_threads(1)
    torch.set_autocast_enabled("cpu", autocast)
    torch.set_autocast_dtype("cpu", dtype)
