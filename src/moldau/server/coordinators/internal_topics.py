"""Creates the internal topics of the coordinators when they are first needed, with their own configs.

If a broker config asks for more replicas than there are brokers, the coordinator stays unavailable, as in
Apache Kafka; the log names the config to change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import CONSUMER_OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from moldau.config.broker.config import BrokerConfig
from moldau.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

logger = logging.getLogger(__name__)

#: Requests that wait for a topic are answered after this time, whether or not it was created.
CREATION_SECONDS = 5.0

Create = Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]


class _Settings(NamedTuple):
    """The prefix of the broker configs of a topic, and its fixed topic configs."""

    prefix: str
    has_min_isr: bool
    fixed: dict[str, str]


_TOPICS: dict[str, _Settings] = {
    CONSUMER_OFFSETS_TOPIC: _Settings(
        "offsets.topic.",
        has_min_isr=False,
        fixed={"cleanup.policy": "compact", "compression.type": "producer"},
    ),
    TRANSACTION_STATE_TOPIC: _Settings(
        "transaction.state.log.",
        has_min_isr=True,
        fixed={
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
        },
    ),
    SHARE_STATE_TOPIC: _Settings(
        "share.coordinator.state.topic.",
        has_min_isr=True,
        fixed={"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
    ),
}


def creatable(config: BrokerConfig, name: str) -> CreatableTopic:
    """Return how to create a topic: internal topics by their own configs, others by the defaults."""
    settings = _TOPICS.get(name)
    if settings is None:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    prefix = settings.prefix
    configs = settings.fixed | {"segment.bytes": str(config[prefix + "segment.bytes"])}
    if settings.has_min_isr:
        configs["min.insync.replicas"] = str(config[prefix + "min.isr"])
    return CreatableTopic(
        name=name,
        num_partitions=config[prefix + "num.partitions"],
        replication_factor=config[prefix + "replication.factor"],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )


class InternalTopics:
    """Creates each internal topic once, however many requests need it at the same time."""

    def __init__(self, config: Callable[[], BrokerConfig], create: Create) -> None:
        self._config = config
        self._create = create
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._reported: set[str] = set()

    async def ensure(self, name: str) -> None:
        """Try to create a topic and wait for at most `CREATION_SECONDS`; the metadata shows the result."""
        task = self._tasks.get(name)
        if task is None:
            task = asyncio.create_task(self._create_topic(name))
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name, None))
        await asyncio.wait([task], timeout=CREATION_SECONDS)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create_topic(self, name: str) -> None:
        topic = creatable(self._config(), name)
        try:
            response = await self._create(CreateTopicsRequest(topics=[topic]))
        except KafkaError as error:
            logger.warning("the topic %s could not be created; the next request retries: %s", name, error)
            return
        for result in response.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._report(topic, result.error_code, result.error_message)

    def _report(self, topic: CreatableTopic, code: int, message: str | None) -> None:
        """Log the reason once: clients retry often."""
        if topic.name in self._reported:
            return
        self._reported.add(topic.name)
        advice = ""
        if code == ErrorCode.INVALID_REPLICATION_FACTOR:
            setting = _TOPICS[topic.name].prefix + "replication.factor"
            advice = (
                f" It requires {topic.replication_factor} replicas: start more brokers, or lower `{setting}` "
                "to the number of brokers and restart."
            )
        logger.error(
            "The topic %s could not be created: %s.%s", topic.name, (message or "unknown").rstrip("."), advice
        )
