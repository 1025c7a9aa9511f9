"""Checks of rows: a row that fails is dropped, becomes a dead letter, is counted, or stops the query.

Spark counts the failures (`observe`) and reports them with the progress of each batch, under `CHECKS`. Every
failure of a check counts, also that of a row that another check removes.

`at_most` limits the failures per batch. Spark reports the counts after the batch is written: the failed rows
are then dropped, in the dead-letter topic or written, as their check says, and the next start continues after
that batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from moldau.pipelines.runtime.definition import BadDefinition, Check
from moldau.pipelines.runtime.progress import ROWS, observed
from moldau.pipelines.sink.dead_letters import ERROR_TYPE, error

#: The first word of the names of observed counts.
CHECKS = "moldau"
#: The count of records that could not be decoded.
UNREADABLE = "unreadable"

RECORD = "record"
ERROR = "__error"
#: Marks the error of a query that a check has stopped, which a restart would not solve.
STOPPED = "MOLDAU_CHECK"


def check_rows(
    frame: DataFrame, checks: Sequence[Check], *, place: str
) -> tuple[DataFrame, DataFrame | None]:
    """Return the rows that passed, and those for the dead-letter topic (with the column `ERROR`) if
    possible."""
    for check in checks:
        if check.on_fail == "dead_letter" and RECORD not in frame.columns:
            raise BadDefinition(
                f"{place}: the check '{check.name}' needs the column '{RECORD}' with the original record for "
                "a dead letter. Move the check before the step that removes the column, or keep the column"
            )
        _check_condition(frame, check, place)
    undecoded = ERROR in frame.columns
    base = frame if undecoded else frame.withColumn(ERROR, F.lit(None).cast(ERROR_TYPE))
    readable = F.col(ERROR).isNull()
    failures = {check.name: readable & ~F.coalesce(F.expr(check.expect), F.lit(False)) for check in checks}
    counts = [F.count_if(~readable).alias(UNREADABLE)] if undecoded else []
    counts += [F.count_if(failures[check.name]).alias(check.counter) for check in checks]
    counts += [F.count_if(readable).alias(ROWS)] if checks else []
    dead = _marked(base, checks, failures)
    counted = base.observe(_counter(place), *counts) if counts else base
    good = counted.filter(_passes(checks, failures)).drop(ERROR)
    return good, dead.filter(F.col(ERROR).isNotNull()) if dead is not None else None


def _check_condition(frame: DataFrame, check: Check, place: str) -> None:
    try:
        kind = frame.select(F.expr(check.expect).alias("expect")).schema["expect"].dataType
    except AnalysisException as wrong:
        reason = next((line for line in str(wrong).splitlines() if line.strip()), "")
        raise BadDefinition(
            f"{place}: the condition of the check '{check.name}' is invalid: {reason}"
        ) from wrong
    if not isinstance(kind, BooleanType):
        raise BadDefinition(
            f"{place}: the check '{check.name}' expects '{check.expect}', which is {kind.simpleString()}; it "
            "must be a boolean condition"
        )


def _counter(place: str) -> str:
    return f"{CHECKS} {place}"


def _marked(base: DataFrame, checks: Sequence[Check], failures: dict[str, Column]) -> DataFrame | None:
    """Set the error of each row without one to its first failed check."""
    if RECORD not in base.columns:
        return None
    marks = [
        F.when(
            failures[check.name],
            error("TRANSFORMATION", check.counter, F.lit(f"expected {check.expect}")),
        )
        for check in checks
        if check.on_fail == "dead_letter"
    ]
    return base.withColumn(ERROR, F.coalesce(F.col(ERROR), *marks))


def _passes(checks: Sequence[Check], failures: dict[str, Column]) -> Column:
    passed = [F.col(ERROR).isNull()]
    for check in checks:
        failed = failures[check.name]
        if check.on_fail in ("drop", "dead_letter"):
            passed.append(~failed)
        elif check.on_fail == "fail":
            message = f"{STOPPED} the check '{check.name}' failed: expected {check.expect}"
            passed.append(F.when(failed, F.raise_error(message).cast("boolean")).otherwise(F.lit(True)))
    return reduce(lambda left, right: left & right, passed)


def exceeded(checks: Sequence[Check], recent: Iterable[Mapping[str, Any]], after_batch: int) -> str | None:
    """Return the message about the first batch after `after_batch` in which too many rows failed a check."""
    limited = [check for check in checks if check.at_most is not None]
    if not limited:
        return None
    for progress in recent:
        if progress["batchId"] <= after_batch:
            continue
        for counts in observed(progress):
            for check in limited:
                message = _exceeded(check, counts)
                if message is not None:
                    return f"in batch {progress['batchId']} {message}"
    return None


def _exceeded(check: Check, counts: Mapping[str, int]) -> str | None:
    failed, rows = counts.get(check.counter, 0), counts.get(ROWS, 0)
    limit = check.at_most
    if limit is None or failed <= limit.rows_of(rows):
        return None
    return (
        f"{failed:,} of {rows:,} rows failed the check '{check.name}', which allows {limit}: "
        f"expected {check.expect}"
    )
