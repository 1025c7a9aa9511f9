"""Runs a task's operator over records, in one batch or in several, and says what came out."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.pipelines.streams.tasks.task import MemoryMap, Operator, Out, Row, run
from tests.harness.streams.results import Written


class TaskRun:
    """One task whose state lasts from batch to batch."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.maps = {name: MemoryMap() for name in operator.maps}
        self._offset = 0

    def batch(self, *records: tuple[int, str | None, str | None, int], now_ms: int = 0) -> list[Out]:
        """Records as port, key, value, timestamp; their offsets are those of their order."""
        rows = [self._row(*each) for each in records]
        return run(self.operator, 0, self.maps, rows, now_ms)

    def rows(self, rows: Sequence[Row]) -> list[Out]:
        """Rows as they are."""
        return run(self.operator, 0, self.maps, rows, 0)

    def _row(self, port: int, key: str | None, value: str | None, timestamp: int) -> Row:
        self._offset += 1
        return Row(port, _bytes(key), _bytes(value), timestamp, topic=f"topic-{port}", offset=self._offset)


def texts(given: Sequence[Out]) -> list[tuple[str | None, str | None, int]]:
    return [(_text(each.key), _text(each.value), each.timestamp) for each in given]


def as_written(scene: str, given: Sequence[Out]) -> list[Written]:
    """What came out, as the records of the scene's output topic."""
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
