"""Stores are read from their changelog topics and show committed data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from moldau.base.errors import KafkaError
from moldau.client.wire.settings import ClientSettings
from moldau.pipelines.streams.application.interactive_queries import (
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyWindowStore,
    StoreLocation,
    open_store,
)
from moldau.pipelines.streams.dsl.serdes import Serdes, Window, Windowed
from moldau.pipelines.streams.dsl.stores import StoreKind
from moldau.testing import Cluster
from tests.harness.wire.requests import create_and_wait

TEXT, LONG = Serdes.string(), Serdes.long()


class Changelog:
    """The changelog of a store, written in transactions."""

    def __init__(self, broker: Cluster, kind: StoreKind) -> None:
        self.topic = f"changelog-{uuid4().hex[:8]}"
        create_and_wait(broker.bootstrap_servers, self.topic, 2)
        self.settings = ClientSettings.from_properties({"bootstrap.servers": broker.bootstrap_servers})
        self.location = StoreLocation("store", self.topic, kind, TEXT, LONG, window_size_ms=10)
        self._producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": self.topic}
        )
        self._producer.init_transactions()

    def write(self, rows: Sequence[tuple[bytes, int | None]], *, commit: bool = True) -> None:
        self._producer.begin_transaction()
        for key, value in rows:
            self._producer.produce(self.topic, LONG.serialize("", value), key)
        self._producer.flush()
        self._producer.commit_transaction() if commit else self._producer.abort_transaction()


@pytest.fixture
def changelog(request: pytest.FixtureRequest, broker: Cluster) -> Iterator[Changelog]:
    yield Changelog(broker, request.param)


def _number(value: int) -> bytes:
    return LONG.serialize("", value) or b""


@pytest.mark.parametrize("changelog", ["key-value"], indirect=True)
def test_key_value_store_shows_committed_data(changelog: Changelog) -> None:
    with open_store(changelog.settings, changelog.location) as store:
        assert isinstance(store, ReadOnlyKeyValueStore)
        assert list(store.all()) == []
        changelog.write([(b"a", 1), (b"b", 2), (b"a", 3), (b"ab", 4)])
        assert (store.get("a"), store.get("b"), store.get("z")) == (3, 2, None)
        changelog.write([(b"a", 9)], commit=False)
        assert store.get("a") == 3
        changelog.write([(b"b", None), (b"c", 5)])
        assert list(store.all()) == [("a", 3), ("ab", 4), ("c", 5)]
        assert list(store.reverse_all()) == [("c", 5), ("ab", 4), ("a", 3)]
        assert list(store.range("ab", "c")) == [("ab", 4), ("c", 5)]
        assert list(store.prefix_scan(b"a")) == [("a", 3), ("ab", 4)]
        assert store.approximate_num_entries() == 3


@pytest.mark.parametrize("changelog", ["window"], indirect=True)
def test_window_store(changelog: Changelog) -> None:
    changelog.write(
        [(key + _number(start) + bytes(4), start) for key in (b"a", b"b") for start in (0, 10, 20)]
    )
    changelog.write([(b"b" + _number(10) + bytes(4), None)])
    with open_store(changelog.settings, changelog.location) as store:
        assert isinstance(store, ReadOnlyWindowStore)
        assert (store.fetch("a", 10), store.fetch("b", 10)) == (10, None)
        assert list(store.fetch("a", 5, 20)) == [(10, 10), (20, 20)]
        first = [(Windowed(key, Window(0, 10)), 0) for key in "ab"]
        assert list(store.fetch_all(0, 9)) == first
        assert len(list(store.all())) == 5


@pytest.mark.parametrize("changelog", ["session"], indirect=True)
def test_session_store(changelog: Changelog) -> None:
    sessions = [(0, 5), (50, 60)]
    changelog.write([(b"a" + _number(end) + _number(start), end) for start, end in sessions])
    with open_store(changelog.settings, changelog.location) as store:
        assert isinstance(store, ReadOnlySessionStore)
        assert [each for each, _ in store.fetch("a")] == [Windowed("a", Window(*each)) for each in sessions]
        assert [value for _, value in store.find_sessions("a", 6, 100)] == [60]
        assert (store.fetch_session("a", 0, 5), store.fetch_session("a", 0, 6)) == (5, None)


def test_missing_changelog_is_named_in_the_error(broker: Cluster) -> None:
    settings = ClientSettings.from_properties({"bootstrap.servers": broker.bootstrap_servers})
    location = StoreLocation("store", "no-such-changelog", "key-value", TEXT, LONG)
    with open_store(settings, location) as store, pytest.raises(KafkaError, match="no-such-changelog"):
        store.get("a")
