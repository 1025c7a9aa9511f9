"""The share coordinator's APIs: initialize, read, write, summarize and delete share group state."""

from __future__ import annotations

from typing import Any

from moldau.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.harness.waiting import eventually
from tests.interop.differential.broker import Broker

NOWHERE = bytes(range(16))


class State:
    """Requests about one share partition."""

    def __init__(self, broker: Broker, group_id: str, topic: str) -> None:
        self._broker = broker
        self._group_id = group_id
        self._topic_id = broker.topic_ids[topic]

    def _ask(self, label: str, module: Any, names: str, version: int, fields: dict[str, Any]) -> Any:
        topic_id = fields.pop("topic_id", self._topic_id)
        group_id = fields.pop("group_id", self._group_id)
        empty = fields.pop("empty", "")
        request_name, topic_name = names.split()
        partition = module.PartitionData(**{"partition": 0, **fields})
        topic = getattr(module, topic_name)(
            topic_id=topic_id, partitions=[] if empty == "partitions" else [partition]
        )
        request = getattr(module, request_name)(
            group_id=group_id, topics=[] if empty == "topics" else [topic]
        )
        return self._broker.ask(label, request, version)

    def initialize(self, label: str, **fields: Any) -> Any:
        names = "InitializeShareGroupStateRequest InitializeStateData"
        return self._ask(f"initialize {label}", initialize_share_group_state, names, 0, fields)

    def read(self, label: str, **fields: Any) -> Any:
        names = "ReadShareGroupStateRequest ReadStateData"
        return self._ask(f"read {label}", read_share_group_state, names, 0, fields)

    def write(self, label: str, *batches: tuple[int, int, int, int], version: int = 1, **fields: Any) -> Any:
        fields["state_batches"] = [
            write_share_group_state.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ]
        names = "WriteShareGroupStateRequest WriteStateData"
        return self._ask(f"v{version} write {label}", write_share_group_state, names, version, fields)

    def summary(self, label: str, version: int = 1, **fields: Any) -> Any:
        names = "ReadShareGroupStateSummaryRequest ReadStateSummaryData"
        module = read_share_group_state_summary
        return self._ask(f"v{version} summary {label}", module, names, version, fields)

    def delete(self, label: str, **fields: Any) -> Any:
        names = "DeleteShareGroupStateRequest DeleteStateData"
        return self._ask(f"delete {label}", delete_share_group_state, names, 0, fields)


def states(broker: Broker) -> None:
    topic = broker.topic("share-state", 2)
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])
    eventually(lambda: broker.call(request, 6).coordinators[0].error_code == 0, what="a coordinator")
    state = State(broker, broker.name("share-state"), topic)

    def loaded() -> bool:
        names = "ReadShareGroupStateSummaryRequest ReadStateSummaryData"
        answer = state._ask("until loaded", read_share_group_state_summary, names, 1, {})
        broker.transcript.pop()
        return bool(answer.results[0].partitions[0].error_code == 0)

    eventually(loaded, every=0.2, what="state that can be read")
    _wrong(state)
    state.initialize("at 5", state_epoch=2, start_offset=5)
    state.read("the initialized state", leader_epoch=3)
    state.read("as an older leader", leader_epoch=2)
    state.read("as no leader", leader_epoch=-1)
    for version in (0, 1):
        state.summary("the initialized state", version)
    state.write("as an older leader", state_epoch=2, leader_epoch=2, start_offset=5)
    state.write("in an old epoch", state_epoch=1, leader_epoch=3, start_offset=5)
    state.write("runs", (5, 9, 0, 1), (12, 14, 2, 1), state_epoch=2, leader_epoch=3, start_offset=5)
    state.read("runs", leader_epoch=3)
    state.write("over them", (7, 12, 4, 2), version=0, state_epoch=2, leader_epoch=3, start_offset=5)
    state.write("neighbours", (15, 20, 2, 1), state_epoch=2, leader_epoch=3, start_offset=5)
    state.read("merged batches", leader_epoch=3)
    state.write(
        "with a new start offset", state_epoch=2, leader_epoch=3, start_offset=8, delivery_complete_count=12
    )
    state.read("the remaining batches", leader_epoch=3)
    state.write("unchanged", state_epoch=-1, leader_epoch=-1, start_offset=-1, delivery_complete_count=3)
    state.summary("all that")
    state.read("as the next leader", leader_epoch=4)
    state.initialize("in an old epoch", state_epoch=1, start_offset=0)
    state.initialize("anew", state_epoch=3, start_offset=-1)
    state.read("after that", leader_epoch=4)
    state.summary("after that")
    state.delete("it")
    state.delete("it again")
    state.read("deleted state", leader_epoch=4)
    state.summary("deleted state")


def _wrong(state: State) -> None:
    """Invalid requests, and requests for missing state."""
    for ask in (state.initialize, state.read, state.write, state.summary, state.delete):
        ask("a negative partition", partition=-1)
        ask("an unknown partition", partition=7)
        ask("an unknown topic", topic_id=NOWHERE)
        ask("without a group", group_id="")
        ask("without topics", empty="topics")
        ask("without partitions", empty="partitions")
    for version in (0, 1):
        state.summary("uninitialized state", version)
        state.summary("an invalid partition", version, partition=9)
        state.write("uninitialized state", version=version)


SCENES = {"share groups, state": states}
