"""Transactions, their coordinator and the state of producers."""

from __future__ import annotations

from moldau.config.definition import BOOLEAN, CLUSTER_WIDE, INT, SHORT, ConfigKey
from moldau.config.validators import at_least

CONFIGS: tuple[ConfigKey, ...] = (
    ConfigKey(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "The longest timeout a transaction may ask for. A transaction that is open holds back readers of "
        "committed records.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "How many partitions `__transaction_state` is created with. It must not change afterwards.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "How many replicas `__transaction_state` is created with; there must be as many brokers.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        INT,
        2,
        "How many replicas of `__transaction_state` must be in sync for a write.",
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
        "How many bytes are read at once when transactions are loaded. A larger batch is still read whole.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often the coordinator looks for transactions that took too long and aborts them.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often the coordinator forgets transactional ids that are too old.",
        at_least(1),
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a partition leader asks the coordinator if a transactional write belongs to an open "
        "transaction.",
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
        "How long a transactional id is remembered without a transaction.",
        at_least(1),
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        INT,
        86_400_000,
        "How long a partition remembers an idempotent producer that writes nothing.",
        at_least(1),
        CLUSTER_WIDE,
    ),
    ConfigKey(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "How often partitions look for producers to forget.",
        at_least(1),
        internal=True,
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The pause before the broker asks the transaction coordinator again whether a write belongs to a "
        "transaction.",
        at_least(1),
    ),
    ConfigKey(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "How long the broker retries the verification of a transactional write with the coordinator.",
        at_least(0),
    ),
)
