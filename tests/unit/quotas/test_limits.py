"""Precedence of the eight levels of client quotas."""

from __future__ import annotations

import itertools

import pytest

from moldau.metadata.image import QuotaEntity, quota_entity
from moldau.quotas.limits import QuotaLimits

KEY = "producer_byte_rate"
#: From the most to the least specific, for the client c of the user u, with who shares the limit.
LEVELS: list[tuple[QuotaEntity, tuple[str, str]]] = [
    (quota_entity([("user", "u"), ("client-id", "c")]), ("u", "c")),
    (quota_entity([("user", "u"), ("client-id", None)]), ("u", "c")),
    (quota_entity([("user", "u")]), ("u", "")),
    (quota_entity([("user", None), ("client-id", "c")]), ("u", "c")),
    (quota_entity([("user", None), ("client-id", None)]), ("u", "c")),
    (quota_entity([("user", None)]), ("u", "")),
    (quota_entity([("client-id", "c")]), ("", "c")),
    (quota_entity([("client-id", None)]), ("", "c")),
]


def limits(entities: dict[QuotaEntity, float]) -> QuotaLimits:
    return QuotaLimits({entity: {KEY: limit} for entity, limit in entities.items()}, KEY)


def test_the_most_specific_level_applies_in_every_combination() -> None:
    for size in range(1, len(LEVELS) + 1):
        for chosen in itertools.combinations(range(len(LEVELS)), size):
            table = limits({LEVELS[level][0]: 100.0 + level for level in chosen})
            client = table.client("u", "c")
            assert client == LEVELS[chosen[0]][1]
            assert table.limit(client) == 100.0 + chosen[0]


def test_clients_of_a_user_share_its_limit() -> None:
    table = limits({LEVELS[2][0]: 1.0})
    assert table.client("u", "a") == table.client("u", "b") == ("u", "")


def test_default_user_limits_every_user_separately() -> None:
    table = limits({LEVELS[5][0]: 1.0})
    assert (table.client("u", "c"), table.client("v", "c")) == (("u", ""), ("v", ""))
    assert table.limit(("v", "")) == 1.0


def test_users_of_a_client_id_share_its_limit() -> None:
    table = limits({LEVELS[7][0]: 1.0})
    assert table.client("u", "c") == table.client("v", "c") == ("", "c")


@pytest.mark.parametrize("entity", [entity for entity, _ in LEVELS[:5] if ("user", "u") in entity])
def test_quotas_of_others_do_not_apply(entity: QuotaEntity) -> None:
    table = limits({entity: 1.0})
    assert table.limit(table.client("other", "c")) is None


def test_client_without_a_client_id_has_no_limit_by_client_id() -> None:
    table = limits({LEVELS[7][0]: 1.0})
    assert table.limit(table.client("u", "")) is None


def test_only_values_of_the_quota_count() -> None:
    table = QuotaLimits({LEVELS[2][0]: {"consumer_byte_rate": 1.0}}, KEY)
    assert not table
    assert QuotaLimits({LEVELS[2][0]: {KEY: 1.0}}, KEY)


def test_names_are_compared_as_they_are() -> None:
    """Kafka encodes names only in its metrics."""
    table = limits({quota_entity([("user", "CN=a, O=b")]): 1.0, quota_entity([("user", "<default>")]): 2.0})
    assert table.limit(table.client("CN=a, O=b", "c")) == 1.0
    assert table.limit(table.client("x", "c")) is None
