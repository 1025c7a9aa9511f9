"""Runs the operator of a task over batches of records."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.pipelines.streams.tasks.state import MemoryMap
from moldau.pipelines.streams.tasks.task import Operator, Out, Row, run
from tests.harness.streams.results import Written


class TaskRun:
    """A task that keeps its state between batches."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.maps = {name: MemoryMap() for name in operator.maps}
        self._offset = 0

    def batch(self, *records: tuple[int, str | None, str | None, int], now_ms: int = 0) -> list[Out]:
        """Process records of port, key, value and timestamp, with increasing offsets."""
        rows = [self._row(*each) for each in records]
        return run(self.operator, 0, self.maps, rows, now_ms)

    def rows(self, rows: Sequence[Row]) -> list[Out]:
        """Process rows."""
        return run(self.operator, 0, self.maps, rows, 0)

    def _row(self, port: int, key: str | None, value: str | None, timestamp: int) -> Row:
        self._offset += 1
        return Row(port, _bytes(key), _bytes(value), timestamp, topic=f"topic-{port}", offset=self._offset)


def texts(given: Sequence[Out]) -> list[tuple[str | None, str | None, int]]:
    return [(_text(each.key), _text(each.value), each.timestamp) for each in given]


def as_written(scene: str, given: Sequence[Out]) -> list[Written]:
    """Return the output as records of the scene's output topic."""
    return [
        Written(
            f"{scene}-out",
            (each.key or b"").hex(),
            None if each.value is None else each.value.hex(),
            str(each.timestamp),
        )
        for each in given
    ]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
