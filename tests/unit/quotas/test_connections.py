"""Counts and creation rates of connections."""

from __future__ import annotations

import pytest

from moldau.metadata.image import quota_entity
from moldau.quotas import connections
from moldau.quotas.connections import ConnectionQuotas, ConnectionSettings, ListenerLimits

LISTENER, INTERNAL = "EXTERNAL", "INTERNAL"
RATE = "connection_creation_rate"


def test_creation_rate_of_the_node_delays_for_at_most_one_window() -> None:
    quotas = ConnectionQuotas(ConnectionSettings(max_creation_rate=10))
    assert [quotas.record(LISTENER, 0) for _ in range(100)] == [0] * 100
    assert quotas.record(LISTENER, 0) == 100
    for _ in range(1000):
        quotas.record(LISTENER, 0)
    assert quotas.record(LISTENER, 0) == 1000


def test_rate_of_zero_delays_every_connection() -> None:
    assert ConnectionQuotas(ConnectionSettings(max_creation_rate=0)).record(LISTENER, 0) == 1000


def test_longer_delay_of_node_and_listener_applies() -> None:
    settings = ConnectionSettings(
        max_creation_rate=2, listeners={LISTENER: ListenerLimits(max_creation_rate=1)}
    )
    quotas = ConnectionQuotas(settings)
    for _ in range(10):
        assert quotas.record(LISTENER, 0) == 0
    assert quotas.record(LISTENER, 0) == 1000
    assert quotas.record("OTHER", 0) == 0


def test_creation_rate_of_the_node_does_not_apply_to_the_inter_broker_listener() -> None:
    quotas = ConnectionQuotas(ConnectionSettings(max_creation_rate=1, protected_listener=INTERNAL))
    assert [quotas.record(INTERNAL, 0) for _ in range(50)] == [0] * 50
    assert quotas.record(LISTENER, 0) == 0, "connections of other brokers do not count"


def test_rate_of_an_address_takes_precedence_over_the_default() -> None:
    quotas = ConnectionQuotas()
    quotas.apply({quota_entity([("ip", None)]): {RATE: 1.0}, quota_entity([("ip", "10.0.0.1")]): {RATE: 2.0}})
    assert [quotas.record_ip(LISTENER, "10.0.0.1", 0) for _ in range(20)] == [0] * 20
    assert quotas.record_ip(LISTENER, "10.0.0.1", 0) > 0
    assert [quotas.record_ip(LISTENER, "10.0.0.2", 0) for _ in range(10)] == [0] * 10
    assert quotas.record_ip(LISTENER, "10.0.0.2", 0) > 0


def test_connection_that_is_closed_for_its_address_does_not_count() -> None:
    quotas = ConnectionQuotas(ConnectionSettings(max_creation_rate=10))
    quotas.apply({quota_entity([("ip", "10.0.0.1")]): {RATE: 1.0}})
    for _ in range(500):
        quotas.record(LISTENER, 0)
        quotas.record_ip(LISTENER, "10.0.0.1", 0)
    assert quotas.record(LISTENER, 0) == 0


@pytest.mark.parametrize("text", ["::1", "0:0:0:0:0:0:0:1"])
def test_addresses_are_compared_by_value(text: str) -> None:
    quotas = ConnectionQuotas()
    quotas.apply({quota_entity([("ip", text)]): {RATE: 1.0}})
    delays = [quotas.record_ip(LISTENER, "0:0:0:0:0:0:0:1", 0) for _ in range(11)]
    assert delays[-1] > 0


def test_addresses_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MAX_ADDRESSES", 50)
    quotas = ConnectionQuotas()
    quotas.apply({quota_entity([("ip", None)]): {RATE: 1.0}})
    for number in range(500):
        quotas.record_ip(LISTENER, f"10.0.{number // 250}.{number % 250}", number)
    assert len(quotas._ip_rates) == 50


def test_counts_return_to_zero() -> None:
    quotas = ConnectionQuotas(ConnectionSettings(max_connections=1, max_per_ip=1))
    for _ in range(3):
        assert quotas.has_slot(LISTENER)
        assert quotas.has_slot_for("10.0.0.1")
        quotas.opened(LISTENER, "10.0.0.1")
        assert not quotas.has_slot(LISTENER)
        assert not quotas.has_slot_for("10.0.0.1")
        assert quotas.excess == 0
        quotas.closed(LISTENER, "10.0.0.1")
    assert not quotas._per_ip
