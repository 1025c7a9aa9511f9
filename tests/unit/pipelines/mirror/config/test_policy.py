"""Names of mirrored and internal topics, as Kafka's replication policies form them."""

from __future__ import annotations

import pytest

from moldau.pipelines.mirror.config.policy import ReplicationPolicy

DEFAULT = ReplicationPolicy()
IDENTITY = ReplicationPolicy(identity_source="us")


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("us.orders", "us", "orders", "orders"),
        ("eu.us.orders", "eu", "us.orders", "orders"),
        ("orders.", None, None, "orders."),
        (".orders", "", "orders", "orders"),
    ],
)
def test_default_policy(topic: str, source: str | None, upstream: str | None, original: str) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream
    assert DEFAULT.original_topic(topic) == original


def test_a_longer_separator() -> None:
    policy = ReplicationPolicy("__", "__")
    assert policy.format_remote_topic("us", "orders") == "us__orders"
    assert policy.upstream_topic("us__orders") == "orders"
    assert policy.topic_source("us__") is None
    assert policy.checkpoints_topic("us") == "us__checkpoints__internal"
    assert policy.offset_syncs_topic("eu") == "mm2-offset-syncs__eu__internal"
    assert policy.is_internal_topic("us__checkpoints__internal")


def test_cycles_are_found_over_several_hops() -> None:
    assert DEFAULT.is_cycle("eu.orders", "eu")
    assert DEFAULT.is_cycle("us.eu.orders", "eu")
    assert not DEFAULT.is_cycle("us.orders", "eu")
    assert not DEFAULT.is_cycle("orders", "eu")


def test_heartbeats_keep_their_prefix_under_the_identity_policy() -> None:
    assert IDENTITY.format_remote_topic("us", "orders") == "orders"
    assert IDENTITY.format_remote_topic("us", "heartbeats") == "us.heartbeats"
    assert IDENTITY.topic_source("orders") == "us"
    assert IDENTITY.topic_source("heartbeats") is None
    assert IDENTITY.is_heartbeats_topic("us.heartbeats")
    assert IDENTITY.is_cycle("eu.heartbeats", "eu")


def test_internal_topics_are_recognised() -> None:
    names = ["__consumer_offsets", "mm2-offsets.us.internal", ".hidden", "us.checkpoints.internal"]
    assert all(DEFAULT.is_internal_topic(name) for name in names)
    of_users = ["orders.internal", "orders-internal", "mm2-orders"]
    assert not any(DEFAULT.is_internal_topic(name) for name in of_users)
    assert DEFAULT.is_checkpoints_topic("us.checkpoints.internal")
    assert not DEFAULT.is_internal_topic("heartbeats")
