"""Failures in a quorum: lost votes, other clusters, copied folders, full and failed disks. The affected node
reports the failure, and the other nodes continue."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from moldau.base.clock import SystemClock
from moldau.base.errors import ErrorCode, KafkaError
from moldau.quorum.errors import UnusableMetadata
from moldau.server.node import Node
from tests.harness.nodes.nodes import run, until
from tests.harness.nodes.quorum_nodes import QuorumNodes, quorum_nodes
from tests.unit.quorum.harness import FullDisk

THREE = [1, 2, 3]
#: A log that is soon replaced by a snapshot.
SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "300",
    "metadata.max.retention.bytes": "1000",
}


class SuspendedClock(SystemClock):
    """The clock of a process that was suspended."""

    suspended_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.suspended_s


async def follower_of(nodes: QuorumNodes) -> int:
    leader = await nodes.leader()
    return next(each for each in nodes.running if each != leader)


async def refused(node: Node, message: str) -> None:
    try:
        with pytest.raises(UnusableMetadata, match=message):
            await node.start()
    finally:
        await node.stop()


def test_voter_without_quorum_state_does_not_start(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            await nodes.write("before")
            victim = await follower_of(nodes)
            state = nodes.log_folder(victim) / "quorum-state"
            await nodes.stop(victim)
            content = state.read_text()
            state.unlink()
            await refused(nodes.make(victim), "quorum-state is missing, .* must not vote twice")
            state.write_text(content[: len(content) // 2])
            await refused(nodes.make(victim), "quorum-state is damaged")
            state.write_text(content.replace('"leaderEpoch":1', '"leaderEpoch":0'))
            await refused(nodes.make(victim), "quorum-state ends at epoch 0, .* must not vote twice")
            await nodes.write("meanwhile")
            state.write_text(content)
            await nodes.start(victim)
            await nodes.agree(["before", "meanwhile"])

    run(main)


def test_controller_of_another_cluster_finds_no_leader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            await nodes.write("before")
            victim = await follower_of(nodes)
            await nodes.stop(victim)
            shutil.rmtree(nodes.log_folder(victim).parent)
            other = nodes.make(victim, cluster_id="AnotherClusterXXXXXXXX")
            starting = asyncio.create_task(other.start())
            await until(lambda: "does not belong to the cluster of this node" in caplog.text)
            await nodes.write("meanwhile")
            assert other.metadata.leader_id == -1
            starting.cancel()
            await other.stop()

    run(main)


def test_voter_with_another_directory_id_joins_as_observer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            await nodes.write("before")
            victim = await follower_of(nodes)
            await nodes.stop(victim)
            folder = nodes.log_folder(victim).parent
            properties = (folder / "meta.properties").read_text()
            directory = next(line for line in properties.splitlines() if line.startswith("directory.id="))
            (folder / "meta.properties").write_text(
                properties.replace(directory, "directory.id=SSnLTKoQQJC4eiwAGUoEJw")
            )
            await nodes.start(victim)
            assert "is a voter of the metadata quorum with another directory id" in caplog.text
            await nodes.write("after")
            await nodes.agree(["before", "after"])
            view = nodes[await nodes.leader()].metadata.describe()
            assert view is not None
            assert [each.key.id for each in view.observers] == [victim]

    run(main)


@pytest.mark.parametrize("on_sync", [False, True])
def test_leader_with_a_full_disk_resigns(tmp_path: Path, on_sync: bool) -> None:
    async def main() -> None:
        disks = {each: FullDisk() for each in THREE}
        async with quorum_nodes(tmp_path, THREE, initial=THREE, disks=disks) as nodes:
            await nodes.write("before")
            leader = await nodes.leader()
            disks[leader].is_full, disks[leader].full_on_sync = not on_sync, on_sync
            with pytest.raises(KafkaError) as failure:
                await nodes.write("lost", leader)
            assert failure.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            await until(lambda: nodes.active not in (None, leader))
            await nodes.write("elsewhere")
            assert "elsewhere" not in nodes.written(leader)
            disks[leader].is_full = disks[leader].full_on_sync = False
            await nodes.agree(["before", "elsewhere"])
            assert nodes.failed == []

    run(main)


@pytest.mark.parametrize("on_sync", [False, True])
def test_follower_with_a_full_disk_catches_up_later(tmp_path: Path, on_sync: bool) -> None:
    async def main() -> None:
        disks = {each: FullDisk() for each in THREE}
        async with quorum_nodes(tmp_path, THREE, initial=THREE, disks=disks) as nodes:
            await nodes.write("before")
            await nodes.agree(["before"])
            victim = await follower_of(nodes)
            disks[victim].is_full, disks[victim].full_on_sync = not on_sync, on_sync
            await nodes.write("meanwhile")
            assert nodes.written(victim) == ["before"]
            disks[victim].is_full = disks[victim].full_on_sync = False
            await nodes.agree(["before", "meanwhile"])
            assert nodes.failed == []

    run(main)


def test_failed_disk_stops_only_its_node(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            await nodes.write("before")
            leader = await nodes.leader()

            def fail() -> None:
                raise OSError(5, "Input/output error")

            nodes[leader].metadata._log.flush = fail  # type: ignore[method-assign]
            with pytest.raises(KafkaError, match="The metadata log failed"):
                await nodes.write("lost", leader)
            assert nodes.failed == [leader]
            await nodes.stop(leader)
            await nodes.write("elsewhere")
            await nodes.agree(["before", "elsewhere"])

    run(main)


def test_suspended_leader_answers_not_controller(tmp_path: Path) -> None:
    """The other nodes may have elected a new leader, and this one has not processed its check-quorum
    timeout."""

    async def main() -> None:
        clocks = {each: SuspendedClock() for each in THREE}
        async with quorum_nodes(tmp_path, THREE, initial=THREE, clocks=clocks) as nodes:
            await nodes.write("before")
            leader = await nodes.leader()
            clocks[leader].suspended_s = 3600
            with pytest.raises(KafkaError) as failure:
                await nodes[leader].metadata.read(lambda: None)
            assert failure.value.code is ErrorCode.NOT_CONTROLLER
            with pytest.raises(KafkaError) as failure:
                await nodes.write("late", leader)
            assert failure.value.code is ErrorCode.NOT_CONTROLLER
            await until(lambda: nodes.active is not None)
            await nodes.agree(["before"])
            assert nodes.failed == []

    run(main)


def test_leader_with_a_hanging_disk_is_replaced(tmp_path: Path) -> None:
    """It cannot even resign. When the disk continues, its unsynced records are discarded."""

    async def main() -> None:
        disks = {each: FullDisk() for each in THREE}
        async with quorum_nodes(tmp_path, THREE, initial=THREE, disks=disks) as nodes:
            await nodes.write("before")
            leader = await nodes.leader()
            others = [nodes[each].metadata for each in THREE if each != leader]
            disks[leader].may_sync.clear()
            pending: list[asyncio.Future[None]] = []
            try:
                pending.append(asyncio.ensure_future(nodes.write("hung", leader)))
                await until(lambda: any(each.is_active for each in others))
                pending.append(asyncio.ensure_future(nodes[leader].metadata.read(lambda: None)))
                active = next(each for each in others if each.is_active)
                await nodes.write("elsewhere", active.settings.node_id)
                assert not pending[0].done()
            finally:
                disks[leader].may_sync.set()
            for each in pending:
                with pytest.raises(KafkaError) as failure:
                    await each
                assert failure.value.code is ErrorCode.NOT_CONTROLLER
            await nodes.agree(["before", "elsewhere"])
            assert nodes.failed == []

    run(main)


def test_damaged_snapshot_is_fetched_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The leader's next snapshot is valid."""

    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, SHORT_LOG, initial=THREE) as nodes:
            away = await follower_of(nodes)
            await nodes.stop(away)
            written: list[str] = []

            async def write_more() -> None:
                for number in range(24):
                    written.append(f"client-{len(written):02d}")
                    await nodes.write(written[-1])
                    if number % 8 == 7:
                        await nodes[await nodes.leader()].metadata.maintain()

            await write_more()
            for path in nodes.log_folder(await nodes.leader()).glob("*.checkpoint"):
                data = bytearray(path.read_bytes())
                data[-100] ^= 1
                path.write_bytes(data)
            starting = asyncio.ensure_future(nodes.start(away))
            await until(lambda: "damaged" in caplog.text)
            await write_more()
            await starting
            await nodes.agree(written)

    run(main)
