import time

import pytest

from moldau.pipelines.sql.run.persistent import Running


def test_a_failed_query_is_restarted_after_one_second_and_then_exponentially(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    running = Running()
    delays = []
    for _ in range(8):
        running.fail("lost")
        delays.append(running.next_attempt - 100.0)
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
