"""How many rows may fail a check: so many of a batch, or such a share of it; one more stops the pipeline.

Spark tells the counts with the progress of a batch, when the batch is written: what failed was dropped, is in
the dead-letter topic or went through by then, as its check says, and the next start begins behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moldau.pipelines.runtime.definition import AtMost, Check
from moldau.pipelines.runtime.progress import ROWS, observed

_AT_MOST = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


def at_most_of(text: str) -> AtMost | None:
    """`20`, `5%`, `0.5 %`; None if it is neither a number of rows nor a share."""
    found = _AT_MOST.fullmatch(text)
    if found is None:
        return None
    number, share = float(found[1]), bool(found[2])
    if (share and number > 100) or (not share and not number.is_integer()):
        return None
    return AtMost(number, share)


def exceeded(checks: Sequence[Check], news: Iterable[Mapping[str, Any]], after_batch: int) -> str | None:
    """What to say of the first batch behind `after_batch` in which too many rows failed a check."""
    limited = [check for check in checks if check.at_most is not None]
    if not limited:
        return None
    for progress in news:
        if progress["batchId"] <= after_batch:
            continue
        for counts in observed(progress):
            for check in limited:
                message = _judge(check, counts)
                if message is not None:
                    return f"in batch {progress['batchId']} {message}"
    return None


def _judge(check: Check, counts: Mapping[str, int]) -> str | None:
    failed, rows = counts.get(check.counter, 0), counts.get(ROWS, 0)
    limit = check.at_most
    if limit is None or failed <= limit.rows_of(rows):
        return None
    return (
        f"{failed:,} of {rows:,} rows failed the check '{check.name}', which allows {limit}: "
        f"expected {check.expect}"
    )
