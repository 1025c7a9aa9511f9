"""Transactions, their coordinator and the state of producers."""

from __future__ import annotations

from moldau.config.definition import BOOLEAN, CLUSTER_WIDE, INT, SHORT, ConfigKey
from moldau.config.validators import at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "The maximum timeout a transaction may request. An open transaction holds back readers of committed "
        "records.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "The number of partitions of `__transaction_state`. It must not change after the topic is created.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "The replication factor of `__transaction_state`. The topic is created once there are as many "
        "brokers.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        INT,
        2,
        "The minimum number of in-sync replicas of `__transaction_state` for a write.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        "The segment size of `__transaction_state`. Small segments are compacted and loaded faster.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "The number of bytes read at once when transactions are loaded. A larger batch is still read whole.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "The interval at which the coordinator aborts transactions that have timed out.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "The interval at which the coordinator removes expired transactional ids.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a partition leader verifies with the coordinator that a transactional write belongs to an "
        "open transaction.",
        update=CLUSTER_WIDE,
    ),
    ConfigKey(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Whether transactions may take part in a two-phase commit outside the cluster and stay prepared "
        "without limit.",
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "The time in milliseconds without a transaction after which a transactional id expires.",
        at_least(1),
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "The time in milliseconds without a write after which a partition removes an idempotent producer.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "The interval between checks for expired producers.",
        at_least(1),
        internal=True,
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The backoff in milliseconds before the verification of a transactional write with the coordinator "
        "is retried.",
        at_least(1),
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "The maximum time in milliseconds that the verification of a transactional write with the "
        "coordinator is retried.",
        at_least(0),
    ),
)
