"""Creates everything a task needs from its spec, and runs its loop until it stops or fails."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

from moldau.client.consumer.consumer import Consumer
from moldau.client.producer.producer import Producer
from moldau.pipelines.connect.config.connector import parse_common
from moldau.pipelines.connect.data.errors import ConnectError
from moldau.pipelines.connect.plugins import Plugins
from moldau.pipelines.connect.sdk import Connector, SinkConnector, SourceConnector
from moldau.pipelines.connect.transforms.chain import chain_of
from moldau.pipelines.connect.worker.retries import MAX_S, Backoff, may_pass
from moldau.pipelines.connect.worker.task import dead_letters
from moldau.pipelines.connect.worker.task.clients import (
    admin_properties,
    consumer_properties,
    producer_properties,
)
from moldau.pipelines.connect.worker.task.control import Control, Event
from moldau.pipelines.connect.worker.task.conversion import (
    SinkConversion,
    SourceConversion,
    create_converters,
)
from moldau.pipelines.connect.worker.task.errors import ErrorHandler, ErrorSettings, LogReporter, Reporter
from moldau.pipelines.connect.worker.task.sink import SinkLoop
from moldau.pipelines.connect.worker.task.source import SourceLoop
from moldau.pipelines.connect.worker.task.spec import TaskSpec
from moldau.pipelines.connect.worker.task.topics import TopicCreation, TopicGroup, topic_groups

logger = logging.getLogger(__name__)

_FLUSH_INTERVAL_MS: Final = 60_000
_CLOSE_S: Final = 5.0
_MAX_CAUSES: Final = 20


def run_task(spec: TaskSpec, control: Control, plugins: Plugins) -> None:
    """Run a task and report its end; raises nothing, because the report says what went wrong.

    A task whose target, or whose brokers, are away starts again, with growing waits.
    """
    backoff = Backoff()
    while not control.stopping:
        started = time.monotonic()
        try:
            connector = plugins.connector(spec.connector_config["connector.class"])
            _runner(connector)(spec, connector, control, plugins)
        except Exception as error:  # noqa: BLE001 - the worker logs it, without secrets
            if not may_pass(error):
                control.link.report(Event.FAILED, trace_of(error))
                return
            if time.monotonic() - started > MAX_S:
                backoff.reset()
            delay_s = backoff.failed()
            logger.warning("Task %s starts again in %.1f s: %s", spec.id, delay_s, error)
            control.report_retry(error)
            control.wait_for(lambda: control.stopping, delay_s)
    control.link.report(Event.STOPPED)


def trace_of(error: BaseException) -> str:
    """Return the trace that the status of a task shows: the error and its causes as in Java's, then ours."""
    lines: list[str] = []
    cause = error.__cause__
    while cause is not None and len(lines) < _MAX_CAUSES:
        lines.append(f"Caused by: {_named(cause)}\n")
        cause = cause.__cause__
    return f"{_named(error)}\n{''.join(lines)}{''.join(traceback.format_exception(error))}"


def _named(error: BaseException) -> str:
    name = getattr(error, "java_class", f"{type(error).__module__}.{type(error).__qualname__}")
    return f"{name}: {error}"


def _runner(connector: Connector) -> Callable[[TaskSpec, Any, Control, Plugins], None]:
    if isinstance(connector, SourceConnector):
        return _run_source
    if isinstance(connector, SinkConnector):
        return _run_sink
    raise ConnectError(f"{type(connector).__qualname__} is neither a source nor a sink connector")


def _run_source(spec: TaskSpec, connector: SourceConnector, control: Control, plugins: Plugins) -> None:
    errors = _error_handler(spec, control, [])
    properties = producer_properties(spec, f"connector-producer-{spec.id}", spec.transactional_id)
    producer: Producer[bytes, bytes] = Producer(properties)
    try:
        SourceLoop(
            spec,
            connector.task(),
            SourceConversion(_converters(spec, plugins), chain_of(spec.connector_config), errors),
            producer,
            TopicCreation(_topic_groups(spec), admin_properties(spec)),
            errors,
            control,
            flush_interval_s=_flush_interval_s(spec.worker_config),
        ).run()
    finally:
        producer.close(_CLOSE_S)


def _run_sink(spec: TaskSpec, connector: SinkConnector, control: Control, plugins: Plugins) -> None:
    letters = _dead_letters(spec)
    errors = _error_handler(spec, control, [] if letters is None else [letters])
    consumer: Consumer[Any, Any] = Consumer(consumer_properties(spec, f"connector-consumer-{spec.id}"))
    try:
        SinkLoop(
            spec,
            connector.task(),
            SinkConversion(_converters(spec, plugins), chain_of(spec.connector_config), errors),
            consumer,
            errors,
            letters,
            control,
            flush_interval_s=_flush_interval_s(spec.worker_config),
        ).run()
    finally:
        consumer.close()
        if letters is not None:
            letters.close()


def _error_handler(spec: TaskSpec, control: Control, reporters: list[Reporter]) -> ErrorHandler:
    settings = ErrorSettings.from_config(parse_common(spec.connector_config))
    if settings.log:
        reporters = [*reporters, LogReporter(spec.id, settings.log_messages)]
    return ErrorHandler(settings, control, reporters)


def _dead_letters(spec: TaskSpec) -> dead_letters.DeadLetters | None:
    config = spec.connector_config
    topic = config.get(f"{dead_letters.PREFIX}topic.name", "").strip()
    if not topic:
        return None
    replicas = int(config.get(f"{dead_letters.PREFIX}topic.replication.factor", "3"))
    dead_letters.create_topic(admin_properties(spec), topic, replicas)
    producer: Producer[bytes, bytes] = Producer(
        producer_properties(spec, f"connector-dlq-producer-{spec.id}")
    )
    enabled = config.get(f"{dead_letters.PREFIX}context.headers.enable", "false").strip().lower() == "true"
    return dead_letters.DeadLetters(spec, topic, producer, context_headers=enabled)


def _converters(spec: TaskSpec, plugins: Plugins) -> Any:
    return create_converters(plugins, spec.connector_config, spec.worker_config)


def _topic_groups(spec: TaskSpec) -> list[TopicGroup]:
    enabled = spec.worker_config.get("topic.creation.enable", "true").strip().lower() != "false"
    return topic_groups(spec.connector_config) if enabled else []


def _flush_interval_s(worker: Mapping[str, str]) -> float:
    return int(worker.get("offset.flush.interval.ms") or _FLUSH_INTERVAL_MS) / 1000
