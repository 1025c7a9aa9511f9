"""Datagen: a source of random records, with the names of Confluent's connector.

Every task generates its own sequence. The number of the last record is the offset, and the random numbers of
a record depend only on seed, task and number: a restarted task continues the same sequence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from moldau.pipelines.connect.config.definition import (
    NO_DEFAULT,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)
from moldau.pipelines.connect.connectors.datagen.shapes import SHAPES, key_of
from moldau.pipelines.connect.data.errors import ConfigError
from moldau.pipelines.connect.data.records import SourceRecord
from moldau.pipelines.connect.sdk import ExactlyOnceSupport, SourceConnector, SourceContext, SourceTask

TOPIC: Final = "kafka.topic"
MAX_INTERVAL: Final = "max.interval"
ITERATIONS: Final = "iterations"
QUICKSTART: Final = "quickstart"
KEY_FIELD: Final = "schema.keyfield"
SEED: Final = "random.seed"
TASK_ID: Final = "task.id"

#: Records per poll if there is no interval between them.
_BATCH: Final = 500
_GENERATION: Final = "generation"


class DatagenConnector(SourceConnector):
    config = (
        ConfigDef()
        .define(
            TOPIC,
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            "Topic to write to.",
            validator=NonEmptyString(),
        )
        .define(
            QUICKSTART,
            ConfigType.STRING,
            NO_DEFAULT,
            Importance.HIGH,
            f"Shape of the records: {', '.join(SHAPES)}.",
            validator=ValidString(tuple(SHAPES), ignore_case=True),
        )
        .define(
            MAX_INTERVAL,
            ConfigType.LONG,
            500,
            Importance.HIGH,
            "Longest pause between two records, in milliseconds; 0 for none.",
            validator=Range(least=0),
        )
        .define(
            ITERATIONS,
            ConfigType.INT,
            -1,
            Importance.HIGH,
            "Number of records that each task generates; -1 for no limit.",
        )
        .define(
            KEY_FIELD,
            ConfigType.STRING,
            None,
            Importance.HIGH,
            "Field of the value that becomes the key; by default that of the quick start.",
        )
        .define(SEED, ConfigType.LONG, 0, Importance.LOW, "Seed of the random numbers.")
    )

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [{**self.properties, TASK_ID: str(number)} for number in range(max_tasks)]

    def task(self) -> SourceTask:
        return DatagenTask()

    def exactly_once_support(self, properties: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class DatagenTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        settings = DatagenConnector.config.parse(context.config)
        self._context = context
        self._topic: str = settings[TOPIC]
        self._shape = SHAPES[settings[QUICKSTART].lower()]
        self._key_field: str = self._shape.key_field if settings[KEY_FIELD] is None else settings[KEY_FIELD]
        if self._key_field and self._shape.schema.field(self._key_field) is None:
            raise ConfigError.invalid(KEY_FIELD, self._key_field, "The quick start has no such field.")
        self._interval_s = settings[MAX_INTERVAL] / 1000
        self._iterations: int = settings[ITERATIONS]
        task = int(context.config.get(TASK_ID, "0"))
        self._seed = (settings[SEED] * 1_000_003 + task) * 1_000_003
        self._pauses = Random(self._seed)
        self._partition = {TASK_ID: task}
        self._count = (context.offset(self._partition) or {}).get(_GENERATION, 0)

    def poll(self) -> Sequence[SourceRecord]:
        left = self._iterations - self._count if self._iterations >= 0 else _BATCH
        if left <= 0:
            self._context.wait(1.0)
            return ()
        if not self._interval_s:
            return [self._next() for _ in range(min(left, _BATCH))]
        if self._context.wait(self._pauses.uniform(0.0, self._interval_s)):
            return ()
        return [self._next()]

    def _next(self) -> SourceRecord:
        value = self._shape.generate(Random(self._seed + self._count), self._count)
        self._count += 1
        key_schema, key = key_of(self._shape, self._key_field, value)
        return SourceRecord(
            topic=self._topic,
            key_schema=key_schema,
            key=key,
            value_schema=self._shape.schema,
            value=value,
            timestamp=int(time.time() * 1000),
            source_partition=self._partition,
            source_offset={_GENERATION: self._count},
        )
