"""How many rows of a batch may fail a check."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.runtime.checks import exceeded
from moldau.pipelines.runtime.definition import AtMost, Check


def batch(number: int, failed: int, rows: int = 100) -> dict[str, Any]:
    counts = {"rows": rows, "unreadable": 3, "check positive": failed, "check other": 100}
    return {"batchId": number, "observedMetrics": {"moldau source": counts}}


@pytest.mark.parametrize(("limit", "allowed"), [(AtMost(5), 5), (AtMost(10, True), 10), (AtMost(0), 0)])
def test_message_names_the_first_batch_with_too_many_failures(limit: AtMost, allowed: int) -> None:
    checks = [Check("positive", "amount > 0", "drop", limit), Check("other", "true", "warn")]
    assert exceeded(checks, [batch(7, allowed)], after_batch=6) is None
    message = exceeded(checks, [batch(7, allowed), batch(8, allowed + 1)], after_batch=6)
    assert message == (
        f"in batch 8 {allowed + 1} of 100 rows failed the check 'positive', which allows {limit}: "
        "expected amount > 0"
    )
    assert exceeded(checks, [batch(8, allowed + 1)], after_batch=8) is None, "already reported"


def test_batch_without_rows_does_not_exceed_a_percentage() -> None:
    assert exceeded([Check("positive", "x", "drop", AtMost(0, True))], [batch(1, 0, 0)], 0) is None
