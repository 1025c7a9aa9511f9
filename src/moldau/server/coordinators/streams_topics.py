"""Creates the internal topics of streams groups on behalf of the clients whose topology needs them.

A heartbeat does not wait for the creation; later heartbeats report the topics as missing until they exist. A
failed creation is not repeated for two heartbeat intervals, and its reason is added to the status.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.topics.lifecycle import create_topics
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.server.controller.channel import ControllerChannel
from moldau.server.dispatch.context import RequestContext
from moldau.server.tasks import BackgroundTasks

logger = logging.getLogger(__name__)

_MAX_FAILURES = 1_000


class _Failure(NamedTuple):
    reason: str
    expires_ms: int


class StreamsTopics:
    def __init__(self, controller: ControllerChannel, clock: Clock) -> None:
        self._controller = controller
        self._clock = clock
        self._tasks = BackgroundTasks()
        self._creating: set[str] = set()
        #: The latest failures by topic, oldest first.
        self._failures: dict[str, _Failure] = {}

    def create(self, context: RequestContext, topics: Mapping[str, CreatableTopic], retry_ms: int) -> None:
        """Start the creation of topics that are not being created; retry a failed one after `retry_ms`."""
        recent = self.failures(topics)
        new = [topic for name, topic in topics.items() if name not in recent and name not in self._creating]
        if new:
            self._creating.update(topic.name for topic in new)
            self._tasks.start(self._create(context, new, retry_ms))

    def failures(self, names: Collection[str]) -> dict[str, str]:
        """Return why some of these topics could not be created recently."""
        now_ms = self._clock.time_ms()
        found = {name: self._failures[name] for name in names if name in self._failures}
        return {name: failure.reason for name, failure in found.items() if failure.expires_ms > now_ms}

    async def close(self) -> None:
        await self._tasks.close()

    async def _create(self, context: RequestContext, topics: list[CreatableTopic], retry_ms: int) -> None:
        names = [topic.name for topic in topics]
        try:
            created = await self._controller.decide(
                context, CreateTopicsRequest(topics=topics), create_topics
            )
        except KafkaError as error:
            for name in names:
                self._failed(name, str(error), retry_ms)
        else:
            for result in created.topics:
                if result.error_code != ErrorCode.NONE:
                    code = ErrorCode(result.error_code)
                    self._failed(result.name, result.error_message or code.name, retry_ms)
        finally:
            self._creating.difference_update(names)

    def _failed(self, name: str, reason: str, retry_ms: int) -> None:
        logger.warning("the internal topic %s of a streams group could not be created: %s", name, reason)
        self._failures.pop(name, None)
        self._failures[name] = _Failure(reason, self._clock.time_ms() + retry_ms)
        if len(self._failures) > _MAX_FAILURES:
            del self._failures[next(iter(self._failures))]
