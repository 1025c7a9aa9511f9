"""Messages of failures, and which of them are fatal; the texts are Spark's."""

from __future__ import annotations

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.runtime.failures import BadData, is_fatal, short_message

#: The plan of a pipeline without dead letters contains the condition that would stop it.
PLAN = """
=== Streaming Query ===
Identifier: agg [id = 632c67a5, runId = 0bc615f4]
Logical Plan:
~Filter CASE WHEN isnull(__error#78) THEN true ELSE cast(raise_error(USER_RAISED_EXCEPTION, map(errorMessage,
concat(MOLDAU_CHECK the record of , record#71.topic, -)), NullType) as boolean) END
"""
STATE = """[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema does not match existing
state value schema. Please check number and type of fields. SQLSTATE: XXKST"""
OPERATORS = """[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name
does not match with the operator in state metadata. SQLSTATE: 42K03"""
SOURCE = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform
initialOffset: Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 267, in main
    initial_offset_func(reader, outfile)
moldau.pipelines.source.errors.SourceError: Unknown topic nosuch. Create it (kafka-topics --create)
 SQLSTATE: 38000"""
CHECK = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure:
SparkRuntimeException: [USER_RAISED_EXCEPTION] MOLDAU_CHECK the check 'small' failed: expected id < 10
SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors"""


@pytest.mark.parametrize(
    ("text", "fatal", "message"),
    [
        (STATE, True, "The state in the checkpoint belongs to a different query. Restore the query"),
        (OPERATORS, True, "The state in the checkpoint belongs to a different query."),
        (SOURCE, False, "Unknown topic nosuch. Create it (kafka-topics --create)"),
        (CHECK, True, "the check 'small' failed: expected id < 10"),
        ("Connection refused", False, "Connection refused"),
        (
            "java.io.IOException: No space left on device",
            False,
            "The disk of the checkpoint or of temporary files is full.",
        ),
    ],
)
def test_message_contains_the_cause_but_not_the_plan(text: str, fatal: bool, message: str) -> None:
    error = RuntimeError(text + PLAN)
    assert is_fatal(error) is fatal
    assert short_message(error).startswith(message)
    assert "record#71" not in short_message(error) and "SQLSTATE" not in short_message(error)


def test_errors_that_a_restart_cannot_solve_are_fatal() -> None:
    assert is_fatal(BadData("6 rows"))
    assert is_fatal(KafkaError(ErrorCode.INVALID_CONFIG, "The format KAFKA holds one column"))
    assert not is_fatal(KafkaError(ErrorCode.NOT_COORDINATOR, "soon"))
