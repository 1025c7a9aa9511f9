"""How a task handles errors: retries, tolerance, and reports of records that could not be processed.

An operation that raises `RetriableError` is repeated for `errors.retry.timeout` with growing pauses. Another
error, or one that lasts, fails the task, unless `errors.tolerance=all` and the operation is a conversion or a
transformation: then the record is skipped and reported to the log and to the dead-letter topic.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import Any, Final, Protocol, TypeVar

from moldau.pipelines.connect.data.errors import ConnectError, RetriableError
from moldau.pipelines.connect.worker.task.control import Control

logger = logging.getLogger(__name__)

R = TypeVar("R")

_FIRST_DELAY_MS: Final = 300


class Stage(Enum):
    """Where in its task a record failed; the names are those in the headers of dead letters."""

    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    TASK_PUT = "TASK_PUT"


class Skipped(Exception):
    """The record could not be processed, was reported, and is skipped."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of one record. `original` is the record as it was read."""

    original: Any
    stage: Stage
    #: The class that failed, by its name in Kafka Connect.
    executing_class: str
    error: Exception


class Reporter(Protocol):
    def report(self, failure: Failure) -> None: ...


@dataclass(frozen=True, slots=True)
class ErrorSettings:
    tolerate: bool = False
    retry_timeout_ms: int = 0
    retry_max_delay_ms: int = 60_000
    log: bool = False
    log_messages: bool = False

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ErrorSettings:
        """Read the parsed settings of a connector."""
        return cls(
            tolerate=config["errors.tolerance"] == "all",
            retry_timeout_ms=config["errors.retry.timeout"],
            retry_max_delay_ms=config["errors.retry.delay.max.ms"],
            log=config["errors.log.enable"],
            log_messages=config["errors.log.include.messages"],
        )


class ErrorHandler:
    """Runs operations on records and decides what their errors mean."""

    def __init__(self, settings: ErrorSettings, control: Control, reporters: list[Reporter]) -> None:
        self.settings = settings
        self._control = control
        self._reporters = reporters

    def run(
        self, stage: Stage, executing_class: str, original: Any, operation: Callable[..., R], *arguments: Any
    ) -> R:
        """Return the operation's result; `Skipped` if it failed and errors are tolerated."""
        started = time.monotonic()
        try:
            try:
                return operation(*arguments)
            except RetriableError as error:
                return self._repeated(error, started, operation, arguments)
        except Exception as error:
            # Converters and transformations may raise anything for a record.
            self.failed(Failure(original, stage, executing_class, error))
            raise Skipped from error

    def failed(self, failure: Failure) -> None:
        """Report a failure; `ConnectError` if it is not tolerated."""
        self._report(failure)
        if not self.settings.tolerate:
            raise ConnectError("Tolerance exceeded in error handler") from failure.error

    def _repeated(
        self,
        error: RetriableError,
        started: float,
        operation: Callable[..., R],
        arguments: tuple[Any, ...],
    ) -> R:
        for attempt in count():
            delay_s = self._delay_s(attempt, started)
            if delay_s is None or self._control.wait_for(lambda: self._control.stopping, delay_s):
                break
            try:
                return operation(*arguments)
            except RetriableError as again:
                error = again
        raise error

    def _delay_s(self, attempt: int, started: float) -> float | None:
        """Return the pause before the next attempt; None if there is none."""
        settings = self.settings
        delay_ms: float = _FIRST_DELAY_MS << min(attempt, 30)
        if delay_ms > settings.retry_max_delay_ms:
            delay_ms = random.uniform(0, settings.retry_max_delay_ms)
        if settings.retry_timeout_ms < 0:
            return delay_ms / 1000
        left_ms = settings.retry_timeout_ms - (time.monotonic() - started) * 1000
        return None if left_ms <= 0 else min(delay_ms, left_ms) / 1000

    def _report(self, failure: Failure) -> None:
        for reporter in self._reporters:
            reporter.report(failure)


class LogReporter:
    """Logs failures (`errors.log.enable`); the record itself only with `errors.log.include.messages`."""

    def __init__(self, task: object, include_messages: bool) -> None:
        self._task = task
        self._include_messages = include_messages

    def report(self, failure: Failure) -> None:
        record = f" of the record {failure.original}" if self._include_messages else ""
        logger.error(
            "Error in task %s: stage %s, class %s%s",
            *(self._task, failure.stage.value, failure.executing_class, record),
            exc_info=failure.error,
        )
