"""What a server counts, in the text form of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from plant_cli.runs.machine import resident_memory

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class ServerMetrics:
    """Counts of requests, errors and texts, and a histogram of seconds."""

    def __init__(self) -> None:
        self.texts = 0
        self.requests: Counter[tuple[str, int]] = Counter()
        self._buckets = [0] * (len(EDGES) + 1)
        self._seconds = 0.0

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request; `path` is the pattern of the address, without what a user
        wrote.
        """
        self.requests[path, status] += 1
        self._buckets[bisect_left(EDGES, seconds)] += 1
        self._seconds += seconds

    def lines(self, waiting: int) -> Iterator[str]:
        """The lines of the page; `waiting` requests are being answered now."""
        yield "# TYPE plant_requests_total counter"
        for (path, status), number in sorted(self.requests.items()):
            yield f'plant_requests_total{{path="{path}",status="{status}"}} {number}'
        yield "# TYPE plant_errors_total counter"
        yield (
            "plant_errors_total "
            f"{sum(number for (_, status), number in self.requests.items() if status >= 500)}"
        )
        yield "# TYPE plant_texts_total counter"
        yield f"plant_texts_total {self.texts}"
        yield "# TYPE plant_request_seconds histogram"
        total = 0
        for edge, number in zip((*EDGES, "+Inf"), self._buckets, strict=True):
            total += number
            yield f'plant_request_seconds_bucket{{le="{edge}"}} {total}'
        yield f"plant_request_seconds_sum {self._seconds:.6f}"
        yield f"plant_request_seconds_count {total}"
        yield "# TYPE plant_waiting gauge"
        yield f"plant_waiting {waiting}"
        yield "# TYPE plant_memory_bytes gauge"
        yield f"plant_memory_bytes {resident_memory()}"
