"""Controllers over real sockets: elections, lagging followers, snapshots, voter changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import METADATA_TOPIC
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.protocol.messages import describe_quorum
from moldau.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from moldau.server.node import Node
from tests.harness.nodes.nodes import CLUSTER_ID, run, until
from tests.harness.nodes.quorum_nodes import QuorumNodes, quorum_nodes

THREE = [1, 2, 3]
#: A snapshot after almost every change, and no log before it.
SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "200",
    "metadata.log.segment.bytes": "8388608",
    "metadata.max.retention.bytes": "1000",
    "internal.metadata.log.segment.bytes": "1200",
    "controller.quorum.fetch.snapshot.max.bytes": "500",
}


async def describe(nodes: QuorumNodes, node_id: int) -> describe_quorum.DescribeQuorumResponse:
    partition = describe_quorum.RequestPartitionData(partition_index=0)
    topic = describe_quorum.RequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    async with nodes.connected(node_id, "CONTROLLER") as connection:
        answer: describe_quorum.DescribeQuorumResponse = await connection.call(
            describe_quorum.DescribeQuorumRequest(topics=[topic])
        )
    return answer


@pytest.mark.parametrize("initial", [THREE, []], ids=["dynamic", "static"])
def test_three_controllers_agree_on_the_leader_and_committed_records(
    tmp_path: Path, initial: list[int]
) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=initial) as nodes:
            leader = await nodes.leader()
            for number in range(5):
                await nodes.write(f"client-{number}")
            await nodes.agree([f"client-{number}" for number in range(5)])
            for node in nodes.running.values():
                assert node.metadata.leader_id == leader
                assert node.metadata.leader_epoch == nodes[leader].metadata.leader_epoch
                assert node.metadata.voters.ids == THREE
            view = (await describe(nodes, leader)).topics[0].partitions[0]
            end = nodes[leader].metadata.log_end_offset
            assert {(each.replica_id, each.log_end_offset) for each in view.current_voters} == {
                (each, end) for each in THREE
            }
            assert (view.leader_id, view.observers) == (leader, [])
            other = next(each for each in THREE if each != leader)
            refused = (await describe(nodes, other)).topics[0].partitions[0]
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(main)


def test_stopping_the_leader_elects_another_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        # An election by timeout would take minutes.
        slow = {"controller.quorum.fetch.timeout.ms": "300000"}
        async with quorum_nodes(tmp_path, THREE, slow, initial=THREE) as nodes:
            await nodes.write("before")
            for round_number in range(3):
                leader = await nodes.leader()
                epoch = nodes[leader].metadata.leader_epoch
                await nodes.stop(leader)
                await nodes.leader()
                await nodes.write(f"round-{round_number}")
                await nodes.start(leader)
                assert nodes[leader].metadata.leader_epoch > epoch
            await nodes.agree(["before", "round-0", "round-1", "round-2"])

    run(main)


def test_five_controllers_tolerate_two_failures(tmp_path: Path) -> None:
    async def main() -> None:
        five = [1, 2, 3, 4, 5]
        async with quorum_nodes(tmp_path, five, initial=five) as nodes:
            for number in range(2):
                await nodes.write(f"client-{number}")
                await nodes.stop(await nodes.leader())
            await nodes.write("three are enough")
            await nodes.agree(["client-0", "client-1", "three are enough"])

    run(main)


def test_without_a_majority_nothing_is_committed(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            await nodes.write("before")
            leader = await nodes.leader()
            others = [each for each in THREE if each != leader]
            for each in others:
                await nodes.stop(each)
            writing = asyncio.create_task(nodes.write("alone", leader))
            await until(lambda: not nodes[leader].metadata.is_active)
            with pytest.raises(KafkaError):
                await writing
            assert nodes.written(leader) == ["before"]
            await nodes.start(others[0])
            await nodes.write("after")
            assert "after" in nodes.written(await nodes.leader())

    run(main)


def test_lagging_follower_fetches_the_snapshot(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, SHORT_LOG, initial=THREE) as nodes:
            leader = await nodes.leader()
            away = next(each for each in THREE if each != leader)
            await nodes.write("seen")
            await nodes.agree(["seen"])
            end = nodes[away].metadata.log_end_offset
            await nodes.stop(away)
            expected = ["seen"]
            for number in range(40):
                expected.append(f"client-{number:02d}")
                await nodes.write(expected[-1])
                if number % 8 == 7:
                    await nodes[leader].metadata.maintain()
            start = nodes[leader].metadata._log.start_offset
            assert start > end
            published: list[tuple[MetadataDelta, MetadataImage]] = []
            node = nodes.running[away] = nodes.make(away)
            await start_and_listen(node, published)
            await nodes.agree(expected)
            snapshots = nodes.log_folder(away).glob("*.checkpoint")
            assert min(int(path.name.partition("-")[0]) for path in snapshots) > end
            assert not any(path.name.endswith(".part") for path in nodes.log_folder(away).iterdir())
            assert nodes[away].metadata._log.start_offset > end
            image = MetadataImage.empty()
            for delta, after in published:
                assert delta.image == image
                assert delta.apply(after.offset, after.epoch) == after
                image = after
            await nodes.stop(away)
            await nodes.start(away)
            await nodes.agree(expected)

    run(main)


async def start_and_listen(node: Node, published: list[tuple[MetadataDelta, MetadataImage]]) -> None:
    announce = node.publisher.announce

    def listen(delta: MetadataDelta, image: MetadataImage) -> None:
        published.append((delta, image))
        announce(delta, image)

    node.publisher.announce = listen  # type: ignore[method-assign]
    await node.start()


def test_voters_are_added_and_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, [1, 2, 3, 4], initial=THREE) as nodes:
            await nodes.write("before")
            await nodes.start(4)
            await nodes.agree(["before"])
            assert nodes[4].metadata.voters.ids == THREE
            leader = await nodes.leader()
            await until(lambda: _observes(nodes, leader, 4))
            endpoint = nodes[4].metadata.settings.endpoints[0]
            request = AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout_ms=5000,
                voter_id=4,
                voter_directory_id=nodes.directory_id(4),
                listeners=[Listener(**endpoint._asdict())],
            )
            async with nodes.connected(leader, "CONTROLLER") as connection:
                added = await connection.call(request)
                assert (added.error_code, added.error_message) == (ErrorCode.NONE, None)
                again = await connection.call(request)
                assert again.error_code == ErrorCode.DUPLICATE_VOTER
                await until(
                    lambda: all(n.metadata.voters.ids == [1, 2, 3, 4] for n in nodes.running.values())
                )
                await nodes.write("with four")
                removal = RemoveRaftVoterRequest(
                    cluster_id=CLUSTER_ID, voter_id=leader, voter_directory_id=nodes.directory_id(leader)
                )
                removed = await connection.call(removal)
                assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
            await until(lambda: nodes.active not in (None, leader))
            await nodes.write("without the first")
            left = [each for each in (1, 2, 3, 4) if each != leader]
            await until(lambda: all(node.metadata.voters.ids == left for node in nodes.running.values()))
            await nodes.agree(["before", "with four", "without the first"])

    run(main)


def test_auto_join_adds_the_controller_as_voter(tmp_path: Path) -> None:
    async def main() -> None:
        config = {"controller.quorum.auto.join.enable": "true"}
        async with quorum_nodes(tmp_path, [1, 2, 3], config, initial=[1]) as nodes:
            await nodes.write("alone")
            for joining, voters in ((2, [1, 2]), (3, [1, 2, 3])):
                await nodes.start(joining)
                await until(lambda ids=voters: nodes[1].metadata.voters.ids == ids)  # type: ignore[misc]
            await nodes.stop(1)
            await nodes.write("without the first")
            await nodes.agree(["alone", "without the first"])

    run(main)


def test_changed_voter_endpoints_are_updated(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, initial=THREE) as nodes:
            leader = await nodes.leader()
            moving = next(each for each in THREE if each != leader)
            await nodes.stop(moving)
            nodes.move(moving)
            await nodes.start(moving)
            endpoints = nodes[moving].metadata.settings.endpoints
            await until(
                lambda: all(
                    node.metadata.voters.endpoints(moving) == endpoints for node in nodes.running.values()
                )
            )
            await nodes.stop(next(each for each in THREE if each not in (leader, moving)))
            await nodes.write("the two of us")
            await nodes.agree(["the two of us"])

    run(main)


def test_kraft_version_upgrade_keeps_the_voters(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE) as nodes:
            await nodes.write("static")
            update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
            request = UpdateFeaturesRequest(feature_updates=[update])

            async def upgraded() -> bool:
                async with nodes.connected(await nodes.leader(), "CONTROLLER") as connection:
                    answer = await connection.call(request)
                return bool(answer.error_code == ErrorCode.NONE)

            async with asyncio.timeout(60):
                # The voters report themselves to the leader first.
                while not await upgraded():
                    await asyncio.sleep(0.05)
            await until(lambda: all(node.metadata.kraft_version == 1 for node in nodes.running.values()))
            directories = {each: nodes.directory_id(each) for each in THREE}
            for node in nodes.running.values():
                known = {voter.id: voter.directory_id for voter in node.metadata.voters.voters}
                assert known == directories
            leader = await nodes.leader()
            await nodes.stop(leader)
            await nodes.write("dynamic")
            await nodes.start(leader)
            await nodes.agree(["static", "dynamic"])
            assert '"data_version":1' in (nodes.log_folder(leader) / "quorum-state").read_text()

    run(main)


def _observes(nodes: QuorumNodes, leader: int, observer: int) -> bool:
    view = nodes[leader].metadata.describe()
    return view is not None and any(each.key.id == observer for each in view.observers)
