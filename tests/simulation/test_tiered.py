"""Tiered storage while brokers and the object store fail; `make simulate KIND=tiered` runs many seeds."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from moldau.server.tiered.orphans import Orphans
from moldau.testing.simulation.store import SimulatedStore, StoreService
from moldau.testing.simulation.world import Simulation
from moldau.tiered.stores.interface import RemoteStoreError
from tests.harness.tiered.segments import Source, segment
from tests.simulation.tiered.run import run_seed

_ORPHANED_SEED = 9


#: Faults at random, and the leader interrupted before the first object, between both, and in a deletion.
@pytest.mark.parametrize("seed", [0, 1, 4, 3, 4 * 2 + 3, 4 * 40 + 3])
def test_nothing_is_lost_and_nothing_is_left(seed: int) -> None:
    run = run_seed(seed)
    assert run.history.counts["read"] > run.history.counts["acknowledged"] > 0


def test_an_upload_after_its_deletion_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sweep(_orphans: Orphans) -> None:
        return None

    monkeypatch.setattr(Orphans, "sweep", no_sweep)
    with pytest.raises(AssertionError, match="no orphans"):
        run_seed(_ORPHANED_SEED)


def test_a_deletion_before_the_copy_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedStore, "copy", lambda *_: None)
    with pytest.raises(AssertionError, match="confirmed before deleted"):
        run_seed(0)


def test_faults_of_the_simulated_store() -> None:
    simulation = Simulation("store")
    service = StoreService(Random(1), simulation.loop)
    source, item = Source(0, [b"x" * 50] * 9), segment(1, 0, 8)
    item = item._replace(size=source.size)

    async def scenario() -> None:
        with service.registered("tier"):
            store = SimulatedStore({"bucket": "tier"})
            service.faults.late = 1.0
            with pytest.raises(RemoteStoreError, match="timed out"):
                store.copy(item, source)
            assert store.segments() == []
            await asyncio.sleep(service.faults.late_seconds)
            # The first object arrived late, the second was never sent.
            assert len(service.objects) == 1
            assert service.is_quiet
            service.faults.late = 0.0
            store.copy(item, source)
            assert store.read(item, 10, 5) == source.data[10:15]
            assert service.is_complete(item.id)
            service.faults.damaged = 1.0
            assert store.read(item, 0, 50) != source.data[:50]
            with pytest.raises(RemoteStoreError, match="damaged"):
                store.read_indexes(item)
            service.faults.damaged, service.faults.lost = 0.0, 1.0
            with pytest.raises(RemoteStoreError, match="reset"):
                store.delete(item)
            assert not service.is_complete(item.id)
        with pytest.raises(ValueError, match="no simulated store"):
            SimulatedStore({"bucket": "tier"})

    simulation.run(scenario())
