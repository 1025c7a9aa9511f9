"""Durability of the metadata log and of `format` when power is lost at any disk operation."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any

from moldau.base.clock import ManualClock
from moldau.base.pool import InlinePool
from moldau.controller.controller import Controller
from moldau.metadata.features import default_levels
from moldau.quorum.bootstrap import bootstrap_records, write_bootstrap, write_initial_voters
from moldau.quorum.metadata_quorum import MetadataQuorum
from moldau.quorum.settings import QuorumSettings
from moldau.raft.voters import Voter, VoterSet
from moldau.server.startup.format import format_storage, is_formatted
from moldau.testing.simulation.disk import SimulatedDisk
from moldau.testing.simulation.drive import Drive, DriveImage
from moldau.testing.simulation.world import SimulatedNode, Simulation
from tests.simulation.crash_points import SEEDS
from tests.simulation.logs import run
from tests.unit.controller.harness import CLUSTER_ID, config
from tests.unit.metadata.builders import uid
from tests.unit.quorum.harness import ENDPOINT, create, with_broker

_DIRECTORY = "/data/meta"
_SETTINGS = QuorumSettings(
    node_id=1,
    directory=_DIRECTORY,
    directory_id=uid(101),
    endpoints=(ENDPOINT,),
    segment_bytes=3000,
    snapshot_after_bytes=1500,
    retention_bytes=4000,
)


def _quorum(drive: Drive, clock: ManualClock, failures: list[Exception]) -> MetadataQuorum:
    controller = Controller(config(), CLUSTER_ID, Random(f"ids/{clock.time_ms()}"))
    return MetadataQuorum(
        _SETTINGS,
        controller,
        disk=SimulatedDisk(drive),
        clock=clock,
        pool=InlinePool(),
        randomness=Random(f"votes/{clock.time_ms()}"),
        on_failure=failures.append,
    )


def _format(drive: Drive, clock: ManualClock) -> None:
    disk = SimulatedDisk(drive)
    disk.makedirs(_DIRECTORY)
    for path in ("/", "/data"):
        disk.sync_dir(path)
    write_bootstrap(disk, clock, _DIRECTORY, bootstrap_records(default_levels()))
    write_initial_voters(disk, clock, _DIRECTORY, VoterSet.of([Voter(1, uid(101), (ENDPOINT,))]))


async def _workload(drive: Drive, clock: ManualClock, known: dict[str, bool], epochs: list[int]) -> None:
    """Start three times and create dozens of topics, so that snapshots are written and the log is trimmed."""
    failures: list[Exception] = []
    for start in range(3):
        quorum = _quorum(drive, clock, failures)
        await quorum.start()
        epochs.append(quorum.leader_epoch)
        if start == 0:
            await with_broker(quorum)
        for number in range(8):
            name = f"topic-{start}-{number}"
            known[name] = False
            answer = await create(quorum, name)
            assert answer.topics[0].error_code == 0, answer
            known[name] = True
            clock.advance(100)
            await quorum.maintain()
        if start != 1:
            await quorum.close()
    assert not failures


async def _check(drive: Drive, clock: ManualClock, known: dict[str, bool], epochs: list[int]) -> None:
    quorum = _quorum(drive, clock, [])
    await quorum.start()
    found = set(quorum.image.topics.by_name)
    for name, acknowledged in known.items():
        assert name in found or not acknowledged, f"the acknowledged topic {name} is gone"
    assert found <= set(known), "topics that were never created"
    if epochs:
        assert quorum.leader_epoch > epochs[-1], "an epoch is used twice"
    await quorum.close()


def _run(work: Coroutine[Any, Any, None]) -> None:
    run(work)


def test_metadata_log_snapshots_and_trimming_survive_a_power_loss() -> None:
    drive, clock = Drive(), ManualClock()
    _format(drive, clock)
    known: dict[str, bool] = {}
    epochs: list[int] = []
    points: list[tuple[DriveImage, dict[str, bool], list[int]]] = []
    drive.on_operation = lambda: points.append((drive.image(), dict(known), list(epochs)))
    _run(_workload(drive, clock, known, epochs))
    assert any(name.endswith(".checkpoint") for name in drive.folder(_SETTINGS.folder).entries)
    for number, (image, expected, seen) in enumerate(points):
        for loss in range(SEEDS):
            random = Random(f"metadata/{number}/{loss}")
            left = image.after_power_loss(random)
            again: list[DriveImage] = []
            left.on_operation = lambda left=left, again=again: again.append(left.image())  # type: ignore[misc]
            try:
                _run(_check(left, clock, expected, seen))
                for second in random.sample(again, 1) if random.random() < 0.3 and again else ():
                    _run(_check(second.after_power_loss(random), clock, expected, seen))
            except BaseException as error:
                error.add_note(f"power lost at operation {number} of {len(points)}, loss {loss}")
                raise


def test_an_interrupted_format_can_be_repeated() -> None:
    """If power is lost while formatting, the next attempt succeeds; a reported format is durable."""

    async def scenario(simulation: Simulation) -> None:
        whole = SimulatedNode(simulation)
        images: list[DriveImage] = []
        whole.drive.on_operation = lambda: images.append(whole.drive.image())
        whole.format()
        for number, image in enumerate(images):
            for loss in range(4):
                left = image.after_power_loss(Random(f"format/{number}/{loss}"))
                disk = SimulatedDisk(left)
                if number == len(images) - 1:
                    assert is_formatted(disk, whole.config), "the finished format is gone"
                elif not is_formatted(disk, whole.config):
                    format_storage(disk, whole.clock, Random(f"again/{number}/{loss}"), whole.config)
                if loss == 0:
                    machine = SimulatedNode(simulation)
                    machine.drive.root = left.root
                    machine.randomness = Random(f"boot/{number}")
                    await machine.boot()
                    await machine.stop()

    simulation = Simulation("format")
    simulation.run(scenario(simulation))
