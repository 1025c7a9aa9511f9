"""The upgrade of a running quorum from static to dynamic: `kafka-features upgrade --feature
kraft.version=1`."""

from __future__ import annotations

from pathlib import Path

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from moldau.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from moldau.raft.voters import DYNAMIC, STATIC
from tests.harness.nodes.nodes import CLUSTER_ID, run, until
from tests.harness.nodes.quorum_nodes import QuorumNodes, quorum_nodes

THREE = [1, 2, 3]
#: Voters report themselves to the leader once per fetch timeout.
QUICK = {"controller.quorum.fetch.timeout.ms": "700"}


async def upgrade(nodes: QuorumNodes, leader: int) -> UpdateFeaturesResponse:
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=DYNAMIC, upgrade_type=1)
    async with nodes.connected(leader, "CONTROLLER") as connection:
        answer: UpdateFeaturesResponse = await connection.call(
            UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[update])
        )
    return answer


def test_kraft_version_upgrade_waits_for_the_reports_of_all_voters(tmp_path: Path) -> None:
    async def main() -> None:
        async with quorum_nodes(tmp_path, THREE, QUICK) as nodes:
            leader = await nodes.leader()
            await nodes.write("before")
            assert nodes[leader].metadata.kraft_version == STATIC
            answers: list[UpdateFeaturesResponse] = []
            while not answers or answers[-1].error_code == ErrorCode.INVALID_UPDATE_VERSION:
                answers.append(await upgrade(nodes, leader))
            assert (answers[-1].error_code, answers[-1].error_message) == (ErrorCode.NONE, None)
            await until(lambda: all(n.metadata.kraft_version == DYNAMIC for n in nodes.running.values()))
            for node in nodes.running.values():
                assert {(each.id, each.directory_id) for each in node.metadata.voters.voters} == {
                    (each, nodes.directory_id(each)) for each in THREE
                }
            assert (await upgrade(nodes, leader)).error_code == ErrorCode.NONE
            gone = next(each for each in THREE if each != leader)
            removal = RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID, voter_id=gone, voter_directory_id=nodes.directory_id(gone)
            )
            async with nodes.connected(leader, "CONTROLLER") as connection:
                removed = await connection.call(removal)
            assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
            await nodes.write("after")
            await nodes.agree(["before", "after"])
            await nodes.stop(gone)
            await nodes.stop(leader)
            await nodes.start(leader)
            assert nodes[leader].metadata.kraft_version == DYNAMIC
            await nodes.leader()

    run(main)
