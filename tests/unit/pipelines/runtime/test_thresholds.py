"""How many rows may fail a check."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.pipelines.runtime.definition import AtMost, Check
from moldau.pipelines.runtime.thresholds import at_most_of, exceeded


def batch(number: int, failed: int, rows: int = 100) -> dict[str, Any]:
    counts = {"rows": rows, "unreadable": 3, "check positive": failed, "check other": 100}
    return {"batchId": number, "observedMetrics": {"moldau source": counts}}


@pytest.mark.parametrize(
    ("text", "meant"),
    [("20", AtMost(20)), ("5%", AtMost(5, True)), ("0.5 %", AtMost(0.5, True)), ("0", AtMost(0))],
)
def test_numbers_of_rows_and_shares(text: str, meant: AtMost) -> None:
    assert at_most_of(text) == meant


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "101%", "%", "5 rows"])
def test_what_is_neither(text: str) -> None:
    assert at_most_of(text) is None


@pytest.mark.parametrize(("limit", "allowed"), [(AtMost(5), 5), (AtMost(10, True), 10), (AtMost(0), 0)])
def test_one_more_than_allowed_is_told_with_its_batch(limit: AtMost, allowed: int) -> None:
    checks = [Check("positive", "amount > 0", "drop", limit), Check("other", "true", "warn")]
    assert exceeded(checks, [batch(7, allowed)], after_batch=6) is None
    told = exceeded(checks, [batch(7, allowed), batch(8, allowed + 1)], after_batch=6)
    assert told == (
        f"in batch 8 {allowed + 1} of 100 rows failed the check 'positive', which allows {limit}: "
        "expected amount > 0"
    )
    assert exceeded(checks, [batch(8, allowed + 1)], after_batch=8) is None, "it has been told"


def test_a_batch_without_rows_has_no_share() -> None:
    assert exceeded([Check("positive", "x", "drop", AtMost(0, True))], [batch(1, 0, 0)], 0) is None
