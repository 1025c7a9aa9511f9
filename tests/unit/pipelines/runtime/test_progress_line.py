"""The progress line, on a terminal and elsewhere."""

from __future__ import annotations

import io

from moldau.pipelines.runtime.progress_line import ProgressLine, describe
from moldau.pipelines.runtime.state import Status


def running(name: str = "orders", state: str = "running") -> Status:
    query = {"rows_per_second": 1234.4, "rows": 5000, "total_lag": 3, "batch_ms": 133}
    return Status(name, state=state, queries=[query], dead_letters=2, restarts=1, error="broken")


def test_status_is_described_in_one_line() -> None:
    text = "orders running: 1,234 rows/s, 5,000 rows, lag 3, batch 133 ms, 2 dead letters, 1 restart"
    assert describe(running()) == text
    assert describe(running(state="waiting")).endswith("1 restart, broken")


def test_without_a_terminal_state_changes_are_printed_at_once() -> None:
    out = io.StringIO()
    line = ProgressLine(out)
    line.begin([running()])
    for second in range(12):
        line.show([running(), running("clicks", "waiting" if second == 3 else "running")], float(second))
    printed = [text.split(":")[0] for text in out.getvalue().splitlines()]
    both = ["orders running", "clicks running"]
    assert printed == [*both, "clicks waiting", "clicks running", *both]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_is_rewritten() -> None:
    out = Terminal()
    line = ProgressLine(out)
    line.begin([running()])
    line.show([running()], 0.0)
    line.show([running()], 1.0)
    line.end([running(), running("clicks", "failed")])
    line.close()
    starting, shown = out.getvalue().split("\r\x1b[K")[1:]
    assert starting == "Starting Spark for orders ..."
    assert shown.startswith("orders running")
    assert shown.splitlines()[1:] == [describe(running("clicks", "failed"))]
    assert shown.endswith("broken\n")
    assert out.getvalue().endswith("\n")
