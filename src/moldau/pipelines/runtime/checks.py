"""Expectations of rows: what fails them is dropped, becomes a dead letter, is counted, or stops the query.

Counts are taken by Spark while the rows pass (`observe`) and come back with the progress of each batch, under
`CHECKS`. They count every failure of a check, also of rows that another check removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from moldau.pipelines.runtime.definition import BadDefinition, Check
from moldau.pipelines.runtime.progress import ROWS
from moldau.pipelines.sink.dead_letters import ERROR_TYPE, error

#: Spark's name of the counts of a query, and the first word of the name of each.
CHECKS = "moldau"
#: Counted beside the checks: records that could not be decoded.
UNREADABLE = "unreadable"

RECORD = "record"
ERROR = "__error"
#: In the message of a query that a check has stopped: it would fail again.
STOPPED = "MOLDAU_CHECK"


def check_rows(
    frame: DataFrame, checks: Sequence[Check], *, place: str
) -> tuple[DataFrame, DataFrame | None]:
    """The rows that go on, and those for the dead-letter topic (with the column `ERROR`), if any can be."""
    for check in checks:
        if check.on_fail == "dead_letter" and RECORD not in frame.columns:
            raise BadDefinition(
                f"{place}: the check '{check.name}' comes too late for a dead letter: the column '{RECORD}' "
                "with the original record is gone. Check before, or keep the column"
            )
        _understand(frame, check, place)
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


def _understand(frame: DataFrame, check: Check, place: str) -> None:
    try:
        kind = frame.select(F.expr(check.expect).alias("expect")).schema["expect"].dataType
    except AnalysisException as wrong:
        reason = next((line for line in str(wrong).splitlines() if line.strip()), "")
        raise BadDefinition(f"{place}: the check '{check.name}' is not understood: {reason}") from wrong
    if not isinstance(kind, BooleanType):
        raise BadDefinition(
            f"{place}: the check '{check.name}' expects '{check.expect}', which is {kind.simpleString()}; it "
            "should be a condition, true or false"
        )


def _counter(place: str) -> str:
    return f"{CHECKS} {place}"


def _marked(base: DataFrame, checks: Sequence[Check], failures: dict[str, Column]) -> DataFrame | None:
    """With the first failed check as the error of each row that has none."""
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
