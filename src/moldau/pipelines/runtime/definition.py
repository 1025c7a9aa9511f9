"""The definition of a pipeline: source, checks, steps and sinks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

#: Formats of keys and values, as in `moldau.pipelines.formats.serialization`, in lower case.
FORMATS = ("json", "kafka", "string", "delimited", "csv", "avro", "json-schema", "protobuf", "bytes")
#: Formats whose columns are those of the registered schema if `registry` is given and `schema` is not.
REGISTRY_FORMATS = ("avro", "json-schema", "protobuf")
STEPS = ("filter", "select", "sql", "python", "watermark", "check")
ON_FAIL = ("drop", "dead_letter", "fail", "warn")
OUTPUT_MODES = ("append", "update", "complete")

#: Names are used for folders, groups and transactional ids.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

OnFail = Literal["drop", "dead_letter", "fail", "warn"]

_AT_MOST = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


class BadDefinition(ValueError):
    """A file does not define a valid pipeline; the message names the place and the remedy."""


def invalid_name(name: str) -> str:
    """Return the message about an invalid name."""
    return f"'{name}' is not a valid name: use letters, digits, '.', '_' and '-'"


@dataclass(frozen=True, slots=True)
class Source:
    #: Topics, by name or by pattern; none for another Spark format.
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    #: The format of a topic's values, or the name of a Spark format.
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

    @classmethod
    def parse(cls, text: str) -> AtMost | None:
        """Parse `20`, `5%` or `0.5 %`; None if the text is neither a number of rows nor a percentage."""
        found = _AT_MOST.fullmatch(text)
        if found is None:
            return None
        number, is_share = float(found[1]), bool(found[2])
        if (is_share and number > 100) or (not is_share and not number.is_integer()):
            return None
        return cls(number, is_share)

    def rows_of(self, rows: int) -> float:
        return rows * self.number / 100 if self.is_share else self.number

    def __str__(self) -> str:
        return f"{self.number:g}% of the rows" if self.is_share else f"{self.number:g} rows"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    #: An SQL condition; a row fails if it is false or null.
    expect: str
    on_fail: OnFail = "fail"
    #: The pipeline stops if more rows of a batch fail.
    at_most: AtMost | None = None

    @property
    def counter(self) -> str:
        """The name of the count of its failures."""
        return f"check {self.name}"


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    #: The condition, columns, query, function, or the column and delay of the watermark.
    arguments: tuple[str, ...] = ()
    check: Check | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    topic: str | None = None
    #: The format of a topic's values, or the name of a Spark format.
    format: str | None = None
    #: An SQL expression; without it the key of the record is kept, if there is one.
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
    #: The topic for records that cannot be decoded or that fail a check with `on_fail: dead_letter`.
    dead_letter: str | None = None
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "1 second"})
    checkpoint: str | None = None
    exactly_once: bool = True
    #: Settings of the Spark session.
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> list[dict[str, str]]:
        """The topics and files that it writes, as its status shows them."""
        found = [
            {"topic": sink.topic, "role": "sink"}
            if sink.topic is not None
            else {"format": sink.format or "", "path": sink.path or ""}
            for sink in self.sinks
        ]
        if self.dead_letter is not None:
            found.append({"topic": self.dead_letter, "role": "dead letters"})
        return found

    @property
    def all_checks(self) -> list[Check]:
        """The checks of the source and of the steps."""
        return [*self.checks, *(step.check for step in self.steps if step.check is not None)]
