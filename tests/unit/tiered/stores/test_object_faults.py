"""An S3 service that answers 503, is gone, or returns damaged bytes: every call ends with a clear error."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.storage.disk.disk import PosixDisk
from moldau.tiered.reading.chunks import ChunkCache
from moldau.tiered.reading.index_cache import IndexCache
from moldau.tiered.reading.reader import RemoteReader
from moldau.tiered.stores.interface import RemoteIndexesDamaged, RemoteStoreError
from moldau.tiered.stores.objects import ObjectStore
from tests.harness.tiered.s3 import s3_configs, s3_server
from tests.harness.tiered.s3_proxy import S3Proxy, s3_proxy
from tests.harness.tiered.segments import Source, segment
from tests.harness.waiting import eventually

_SOURCE = Source(0, [bytes([n]) * 3000 for n in range(100)])
_ITEM = segment(1, 0, 99, size=_SOURCE.size)


@pytest.fixture(scope="module")
def proxied() -> Iterator[S3Proxy]:
    with s3_server() as endpoint, s3_proxy(endpoint) as proxy:
        yield proxy


@pytest.fixture
def proxy(proxied: S3Proxy) -> Iterator[S3Proxy]:
    yield proxied
    proxied.failing, proxied.damaged, proxied.gone, proxied.refused = frozenset(), False, False, 0


@pytest.fixture
def store(proxy: S3Proxy, tmp_path: Path) -> ObjectStore:
    store = ObjectStore(s3_configs(proxy.endpoint, tmp_path.name) | {"retry.timeout.ms": "300"})
    store.copy(_ITEM, _SOURCE)
    return store


@pytest.mark.parametrize("gone", [False, True])
def test_an_outage_ends_every_call_in_time(store: ObjectStore, proxy: S3Proxy, gone: bool) -> None:
    proxy.gone, proxy.failing = gone, frozenset({"GET", "PUT", "POST", "DELETE", "HEAD"})
    other = segment(2, 0, 99, size=_SOURCE.size)
    for call, reason in (
        (lambda: store.copy(other, _SOURCE), "cannot copy"),
        (lambda: store.read(_ITEM, 0, 1000), "cannot read"),
        (lambda: store.read_indexes(_ITEM), "cannot read the indexes"),
        (lambda: store.delete(_ITEM), "cannot delete"),
        (lambda: list(store.segments()), "cannot list"),
    ):
        began = time.monotonic()
        with pytest.raises(RemoteStoreError, match=reason):
            call()
        assert time.monotonic() - began < 10
    assert proxy.refused >= 5
    proxy.gone, proxy.failing = False, frozenset()
    assert store.read(_ITEM, 0, _SOURCE.size) == _SOURCE.data
    assert [each.id for each in store.segments()] == [_ITEM.id]


def test_a_short_outage_is_repeated_by_the_client(proxy: S3Proxy, tmp_path: Path) -> None:
    store = ObjectStore(s3_configs(proxy.endpoint, tmp_path.name) | {"retry.timeout.ms": "20000"})
    store.copy(_ITEM, _SOURCE)
    proxy.failing = frozenset({"GET"})
    healing = threading.Thread(target=_heal_after, args=(proxy, 2))
    healing.start()
    assert store.read(_ITEM, 0, 1000) == _SOURCE.data[:1000]
    healing.join(10)
    assert proxy.refused >= 2


def _heal_after(proxy: S3Proxy, refused: int) -> None:
    eventually(lambda: proxy.refused >= refused, timeout=20)
    proxy.failing = frozenset()


def test_damaged_bytes_are_noticed(store: ObjectStore, proxy: S3Proxy, tmp_path: Path) -> None:
    indexes = IndexCache(store, PosixDisk(), str(tmp_path / "cache"), 1 << 20)
    indexes.prepare()
    reader = RemoteReader(indexes, ChunkCache(store))
    proxy.damaged = True
    with pytest.raises(RemoteIndexesDamaged):
        store.read_indexes(_ITEM)
    with pytest.raises(RemoteStoreError, match="is damaged in the remote store"):
        reader.read(_ITEM, 0, 10**6, upper_bound=10**6, min_one_batch=True)
    proxy.damaged = False
    found = reader.read(_ITEM, 0, 10**6, upper_bound=10**6, min_one_batch=True)
    assert bytes(found.data) == _SOURCE.data
