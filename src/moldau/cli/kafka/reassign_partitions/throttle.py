"""Throttles of reassignments: set and remove the configurations of brokers and topics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.base.ids import TopicPartition
from moldau.cli.kafka.reassign_partitions.plan import Move
from moldau.client.admin.configs import AlterConfig, AlterOperation, ConfigResource, ResourceType

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


def throttled_replicas(moves: Mapping[TopicPartition, Move]) -> dict[str, tuple[str, str]]:
    """Return the throttled replicas of leaders and followers by topic, as `partition:broker,...`."""
    leaders: dict[str, set[str]] = defaultdict(set)
    followers: dict[str, set[str]] = defaultdict(set)
    for (topic, partition), move in moves.items():
        leaders[topic].update(f"{partition}:{broker}" for broker in move.sources)
        followers[topic].update(f"{partition}:{broker}" for broker in move.destinations - move.sources)
    return {
        topic: (",".join(sorted(leaders[topic])), ",".join(sorted(followers[topic]))) for topic in leaders
    }


def throttle_moves(admin: AdminClient, moves: Mapping[TopicPartition, Move], rate: int) -> None:
    """Limit copying between brokers to `rate` bytes per second."""
    _alter(
        admin,
        {
            ConfigResource(ResourceType.TOPIC, topic): {
                LEADER_REPLICAS: leaders,
                FOLLOWER_REPLICAS: followers,
            }
            for topic, (leaders, followers) in throttled_replicas(moves).items()
        },
    )
    brokers = {broker for move in moves.values() for broker in move.sources | move.destinations}
    rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    _alter(admin, {_broker(broker): rates for broker in sorted(brokers)})
    print(f"The inter-broker throttle limit was set to {rate} B/s")


def throttle_log_dirs(admin: AdminClient, brokers: Iterable[int], rate: int) -> None:
    """Limit copying between the log directories of brokers to `rate` bytes per second."""
    _alter(admin, {_broker(broker): {LOG_DIRS_RATE: str(rate)} for broker in sorted(set(brokers))})
    print(f"The replica-alter-dir throttle limit was set to {rate} B/s")


def clear_throttles(admin: AdminClient, partitions: Sequence[tuple[TopicPartition, list[int]]]) -> None:
    """Remove the throttles of topics and of all brokers; which brokers were throttled is not recorded."""
    brokers = {node.id for node in admin.describe_cluster().nodes}
    brokers.update(broker for _, replicas in partitions for broker in replicas)
    listed = ",".join(map(str, sorted(brokers)))
    print(f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} {listed}")
    rates = (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)
    _alter(admin, {_broker(broker): dict.fromkeys(rates) for broker in sorted(brokers)})
    topics = sorted({partition.topic for partition, _ in partitions})
    print(f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}")
    replicas = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    _alter(admin, {ConfigResource(ResourceType.TOPIC, topic): dict.fromkeys(replicas) for topic in topics})


def _broker(broker: int) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, str(broker))


def _alter(admin: AdminClient, wanted: Mapping[ConfigResource, Mapping[str, str | None]]) -> None:
    """Set configurations; delete those whose value is None."""
    changes = {
        resource: [
            AlterConfig(name, AlterOperation.DELETE if value is None else AlterOperation.SET, value)
            for name, value in values.items()
        ]
        for resource, values in wanted.items()
    }
    for error in admin.incremental_alter_configs(changes).values():
        if error is not None:
            raise error
