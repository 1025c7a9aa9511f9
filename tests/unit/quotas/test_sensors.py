"""The table of sensors: shared limits, changed limits, bounded memory."""

from __future__ import annotations

from moldau.metadata.image import quota_entity
from moldau.quotas.sensors import EXPIRY_MS, MAX_CLIENT_ID, Sensors

KEY = "producer_byte_rate"
DEFAULT_CLIENT = quota_entity([("client-id", None)])
DEFAULT_USER = quota_entity([("user", None)])


def sensors(max_sensors: int = 100) -> Sensors[list[int]]:
    return Sensors(KEY, list, max_sensors)


def test_client_without_a_limit_has_no_sensor() -> None:
    table = sensors()
    assert (table.enabled, table.of("u", "c", 0), len(table)) == (False, None, 0)


def test_sensor_survives_a_changed_limit() -> None:
    table = sensors()
    table.apply({DEFAULT_USER: {KEY: 10.0}})
    before = table.of("u", "c", 0)
    table.apply({DEFAULT_USER: {KEY: 20.0}})
    after = table.of("u", "d", 0)
    assert before is after
    assert after is not None
    assert after.limit == 20.0


def test_removed_limit_takes_effect_at_once() -> None:
    table = sensors()
    table.apply({DEFAULT_USER: {KEY: 10.0}})
    assert table.of("u", "c", 0) is not None
    table.apply({})
    assert (table.enabled, table.of("u", "c", 0), len(table)) == (False, None, 0)


def test_more_specific_limit_takes_effect_at_once() -> None:
    table = sensors()
    table.apply({DEFAULT_USER: {KEY: 10.0}})
    shared = table.of("u", "c", 0)
    table.apply({DEFAULT_USER: {KEY: 10.0}, quota_entity([("user", "u"), ("client-id", "c")]): {KEY: 1.0}})
    own = table.of("u", "c", 0)
    assert own is not None
    assert own.limit == 1.0
    assert own is not shared


def test_sensors_not_used_for_an_hour_are_dropped() -> None:
    table = sensors()
    table.apply({DEFAULT_CLIENT: {KEY: 10.0}})
    table.of("u", "idle", 0)
    busy = table.of("u", "busy", EXPIRY_MS - 1)
    table.expire(EXPIRY_MS)
    assert len(table) == 1
    assert table.of("u", "busy", EXPIRY_MS) is busy


def test_client_ids_chosen_by_a_client_do_not_fill_the_memory() -> None:
    table = sensors(max_sensors=100)
    table.apply({DEFAULT_CLIENT: {KEY: 10.0}})
    busy = table.of("u", "busy", 0)
    for now in range(10_000):
        table.of("u", f"client-{now}", now)
        assert table.of("u", "busy", now) is busy
    assert len(table) <= 100
    assert len(table._resolved) <= 200


def test_long_client_ids_are_not_kept() -> None:
    table = sensors()
    table.apply({DEFAULT_CLIENT: {KEY: 10.0}})
    long = "c" * 32_000
    sensor = table.of("u", long + "1", 0)
    assert sensor is table.of("u", long + "1", 1)
    assert sensor is not table.of("u", long + "2", 1)
    kept = [*table._sensors, *table._resolved]
    assert max(len(text) for names in kept for text in names) <= MAX_CLIENT_ID
