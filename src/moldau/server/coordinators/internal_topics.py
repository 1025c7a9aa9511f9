"""The topics the coordinators write: made when somebody first needs one, with settings of their own.

A broker configuration that asks for more replicas than there are brokers leaves the coordinator unavailable,
as in Apache Kafka; the log then says which setting to change.
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

log = logging.getLogger(__name__)

#: Clients that wait for a topic are answered after this long, whatever the controller does.
CREATION_SECONDS = 5.0

Create = Callable[[CreateTopicsRequest], Awaitable[CreateTopicsResponse]]


class _Settings(NamedTuple):
    """The names of the broker settings that shape a topic, and what is fixed about it."""

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
    """How a topic that does not exist is created: internal ones by their own settings."""
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
    """Creates each internal topic once, however many ask at the same time."""

    def __init__(self, config: Callable[[], BrokerConfig], create: Create) -> None:
        self._config = config
        self._create = create
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._complained: set[str] = set()

    async def ensure(self, name: str) -> None:
        """Try to create it, for some seconds; whether that worked, the metadata tells."""
        task = self._under_way.get(name)
        if task is None:
            task = asyncio.create_task(self._make(name))
            self._under_way[name] = task
            task.add_done_callback(lambda _: self._under_way.pop(name, None))
        await asyncio.wait([task], timeout=CREATION_SECONDS)

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make(self, name: str) -> None:
        topic = creatable(self._config(), name)
        try:
            answer = await self._create(CreateTopicsRequest(topics=[topic]))
        except KafkaError as error:
            log.warning("%s cannot be created now: %s", name, error)
            return
        for result in answer.topics:
            if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._complain(topic, result.error_code, result.error_message)

    def _complain(self, topic: CreatableTopic, code: int, message: str | None) -> None:
        """Once: clients ask again and again."""
        if topic.name in self._complained:
            return
        self._complained.add(topic.name)
        advice = ""
        if code == ErrorCode.INVALID_REPLICATION_FACTOR:
            setting = _TOPICS[topic.name].prefix + "replication.factor"
            advice = (
                f" It asks for {topic.replication_factor} replicas: start more brokers, or lower `{setting}` "
                "to the number of brokers and restart."
            )
        log.error("%s cannot be created: %s.%s", topic.name, (message or "unknown").rstrip("."), advice)
