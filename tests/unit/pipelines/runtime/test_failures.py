"""What is told of failures, and which of them would happen again; the texts are Spark's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.pipelines.runtime.checkpoints import refuse_foreign
from moldau.pipelines.runtime.definition import BadDefinition, Definition, Sink, Source
from moldau.pipelines.runtime.failures import BadData, brief, is_fatal

#: Every plan of a pipeline without dead letters has the words of the condition that would stop it.
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
moldau.pipelines.source.errors.SourceError: No topic nosuch exists. Create it (kafka-topics --create)
 SQLSTATE: 38000"""
CHECK = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 4 times, most recent failure:
SparkRuntimeException: [USER_RAISED_EXCEPTION] MOLDAU_CHECK the check 'small' failed: expected id < 10
SQLSTATE: P0001
\tat org.apache.spark.sql.errors.QueryExecutionErrors"""


@pytest.mark.parametrize(
    ("text", "fatal", "told"),
    [
        (STATE, True, "The state in the checkpoint is that of another query. Put the query back as it was"),
        (OPERATORS, True, "The state in the checkpoint is that of another query."),
        (SOURCE, False, "No topic nosuch exists. Create it (kafka-topics --create)"),
        (CHECK, True, "the check 'small' failed: expected id < 10"),
        ("Connection refused", False, "Connection refused"),
        ("java.io.IOException: No space left on device", False, "A disk is full, that of the checkpoint"),
    ],
)
def test_the_cause_is_told_and_not_the_plan(text: str, fatal: bool, told: str) -> None:
    error = RuntimeError(text + PLAN)
    assert is_fatal(error) is fatal
    assert brief(error).startswith(told)
    assert "record#71" not in brief(error) and "SQLSTATE" not in brief(error)


def test_what_would_happen_again() -> None:
    assert is_fatal(BadData("6 rows"))
    assert is_fatal(KafkaError(ErrorCode.INVALID_CONFIG, "The format KAFKA holds one column"))
    assert not is_fatal(KafkaError(ErrorCode.NOT_COORDINATOR, "soon"))


def definition(**source: object) -> Definition:
    return Definition("mine", Path("mine.yaml"), Source(**source), (Sink(topic="out"),))  # type: ignore[arg-type]


def checkpoint(folder: Path, offsets: str) -> str:
    (folder / "offsets").mkdir()
    (folder / "offsets" / "9").write_text("v1\n{}\n{}\n")
    (folder / "offsets" / "10").write_text('v1\n{"batchWatermarkMs": 0}\n' + offsets + "\n")
    return str(folder)


@pytest.mark.parametrize(
    ("offsets", "source", "read"),
    [
        ('{"a": {"0": 5}, "b": {"0": 1}}', {"topics": ("c",)}, "the topics a, b"),
        ('{"a": {"0": 5}}', {"format": "rate"}, "the topics a"),
        ("17", {"topics": ("a",)}, "no topic"),
        ('{"logOffset": 3}', {"topics": ("a",)}, "no topic"),
    ],
)
def test_the_checkpoint_of_another_pipeline_is_refused(
    tmp_path: Path, offsets: str, source: dict[str, object], read: str
) -> None:
    place = checkpoint(tmp_path, offsets)
    with pytest.raises(
        BadDefinition, match=f"mine.yaml: the checkpoint .* reads {read}. Give this one another"
    ):
        refuse_foreign(place, definition(**source))


@pytest.mark.parametrize(
    ("offsets", "source"),
    [
        ('{"a": {"0": 5}}', {"topics": ("a", "new")}),
        ('{"a": {"0": 5}}', {"pattern": "x.*"}),
        ('{"$moldau": {}}', {"pattern": "x.*"}),
        ('{"a": {"0": 5}}', {"topics": ("b",), "options": {"failOnDataLoss": "false"}}),
        ('{"logOffset": 3}', {"format": "parquet"}),
        ("half a li", {"topics": ("a",)}),
    ],
)
def test_a_checkpoint_that_may_be_its_own_is_not(
    tmp_path: Path, offsets: str, source: dict[str, object]
) -> None:
    refuse_foreign(checkpoint(tmp_path, offsets), definition(**source))
    refuse_foreign(str(tmp_path / "none yet"), definition(**source))
    refuse_foreign("s3://bucket/folder", definition(**source))
