"""A pipeline as it is written down: where from, what happens, what is checked, where to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

#: Formats of keys and values; the names of `moldau.pipelines.formats.serialization`, in lower case.
FORMATS = ("json", "kafka", "string", "delimited", "csv", "avro", "bytes")
STEPS = ("filter", "select", "sql", "python", "watermark", "check")
ON_FAIL = ("drop", "dead_letter", "fail", "warn")
OUTPUT_MODES = ("append", "update", "complete")

#: Names become folders, groups and transactional ids.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

OnFail = Literal["drop", "dead_letter", "fail", "warn"]


class BadDefinition(ValueError):
    """A file does not define a pipeline; the message names the place and what would be right."""


def no_name(name: str) -> str:
    """What to say of a name that is none."""
    return f"'{name}' is no name: letters, digits, '.', '_' and '-'"


@dataclass(frozen=True, slots=True)
class Source:
    #: Topics, by name or by a pattern; none if another format of Spark is read.
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    #: The format of values of a topic, otherwise Spark's name of the format.
    format: str | None = None
    schema: str | None = None
    key_format: str | None = None
    key_schema: str | None = None
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_topic(self) -> bool:
        return bool(self.topics) or self.pattern is not None


@dataclass(frozen=True, slots=True)
class AtMost:
    """A number of rows, or a percentage of the rows of a batch."""

    number: float
    is_share: bool = False

    def rows_of(self, rows: int) -> float:
        return rows * self.number / 100 if self.is_share else self.number

    def __str__(self) -> str:
        return f"{self.number:g}% of the rows" if self.is_share else f"{self.number:g} rows"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    #: An SQL condition; a row for which it is not true fails, also if it is null.
    expect: str
    on_fail: OnFail = "fail"
    #: More failures than this in a batch stop the pipeline.
    at_most: AtMost | None = None

    @property
    def counter(self) -> str:
        """Under which name its failures are counted."""
        return f"check {self.name}"


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    #: The condition, the columns, the query, the function's place, the watermark's column and delay.
    words: tuple[str, ...] = ()
    check: Check | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    topic: str | None = None
    #: The format of values of a topic, otherwise Spark's name of the format.
    format: str | None = None
    #: An SQL expression; without it the key of the record is kept, where there is one.
    key: str | None = None
    key_format: str = "kafka"
    path: str | None = None
    output_mode: Literal["append", "update", "complete"] = "append"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    file: Path
    source: Source
    sinks: tuple[Sink, ...]
    steps: tuple[Step, ...] = ()
    checks: tuple[Check, ...] = ()
    bootstrap_servers: str | None = None
    #: The topic for records that cannot be read or fail a check that says so.
    dead_letter: str | None = None
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "1 second"})
    checkpoint: str | None = None
    exactly_once: bool = True
    #: Settings of the Spark session.
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_checks(self) -> list[Check]:
        """Those of the source and those among the steps."""
        return [*self.checks, *(step.check for step in self.steps if step.check is not None)]
