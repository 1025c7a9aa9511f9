"""The commands of scenarios for share groups.

topic NAME PARTITIONS | delete_topic NAME
member NAME [topics=a,b] [group=G]
heartbeat NAME ...             send a heartbeat; prints `A: epoch 2, assigned orders-0`
heartbeat_with NAME FIELD=VALUE ...   send a heartbeat with changed fields
leave NAME                     leave the group
initialized | not_initialized  report the outcome of the requested initializations
describe GROUP                 print state and epochs, a line for each member, and initialized partitions
records                        print the records since the last time
pass MS | crash
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.base.errors import KafkaError
from moldau.groups.context import Requester
from moldau.groups.share.checks import check_request
from moldau.groups.share.group import ShareGroup
from moldau.groups.share.topics import StateTopics
from moldau.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.effects import InitializeShareGroupState
from tests.harness.worlds.coordination import Coordination


class ShareWorld:
    def __init__(self) -> None:
        self._coordination = Coordination()
        self._members: dict[str, tuple[str, list[str]]] = {}
        self._epochs: dict[str, int] = {}
        self._seen = 0

    def run(self, command: str) -> list[str]:
        name, *words = command.split()
        method: Callable[..., list[str] | None] = getattr(self, f"_{name}")
        return method(*words) or []

    # Commands.

    def _topic(self, name: str, partitions: str) -> None:
        self._coordination.create_topic(name, int(partitions))

    def _delete_topic(self, name: str) -> None:
        self._coordination.delete_topic(name)
        self._coordination.pass_ms(0)

    def _member(self, name: str, *settings: str) -> None:
        given = dict(each.split("=", 1) for each in settings)
        self._members[name] = (given.get("group", "g"), given.get("topics", "orders").split(","))
        self._epochs[name] = 0

    def _heartbeat(self, *names: str) -> list[str]:
        return [f"{name}: {self._send(name)}" for name in names]

    def _heartbeat_with(self, name: str, *settings: str) -> list[str]:
        given: dict[str, Any] = dict(each.split("=", 1) for each in settings)
        fields = {key: int(value) if value.lstrip("-").isdigit() else value for key, value in given.items()}
        if "topics" in fields:
            fields["subscribed_topic_names"] = fields.pop("topics").split(",")
        return [f"{name}: {self._send(name, **fields)}"]

    def _leave(self, name: str) -> list[str]:
        response = self._send(name, member_epoch=-1)
        self._epochs[name] = 0
        return [f"{name}: {response}"]

    def _send(self, name: str, **fields: Any) -> str:
        group_id, topics = self._members[name]
        request = ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=f"{name}-id", member_epoch=self._epochs[name]
        )
        if self._epochs[name] == 0:
            request.subscribed_topic_names = topics
        for key, value in fields.items():
            setattr(request, key, value)
        requester = Requester(1, name, "/127.0.0.1")
        try:
            check_request(request)
            answer = self._coordination.answer(
                lambda shard: shard.share.heartbeats.heartbeat(requester, request)
            )
        except KafkaError as error:
            return f"{error.code.name}: {error.message}"
        self._epochs[name] = max(answer.member_epoch, 0)
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}"
        found = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return f"epoch {answer.member_epoch}, assigned {self._partition_names(found)}"

    def _initialized(self) -> list[str]:
        return self._report("initialized")

    def _not_initialized(self) -> list[str]:
        return self._report("not_initialized")

    def _report(self, outcome: str) -> list[str]:
        effects = [each for each in self._coordination.effects if isinstance(each, InitializeShareGroupState)]
        self._coordination.effects.clear()
        printed = []
        for each in effects:
            topics = {topic_id: list(offsets) for topic_id, offsets in each.offsets.items()}
            self._coordination.answer(
                lambda shard, each=each, topics=topics: getattr(shard.share.offsets, outcome)(
                    each.group_id, topics
                )
            )
            printed.append(f"{self._partition_names(topics)} in epoch {each.state_epoch}")
        return printed or ["no initialization requested"]

    def _describe(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ShareGroup):
            return [f"{group_id} does not exist"]
        lines = [f"{group.state_name}, epoch {group.epoch}, target {group.assignment_epoch}"]
        for member in sorted(group.members.values(), key=lambda each: each.member_id):
            lines.append(
                f"  {member.member_id}: epoch {member.member_epoch}, "
                f"previous {member.previous_member_epoch}, assigned {self._partition_names(member.assigned)}"
            )
        if group.topics is not None:
            lines.append(f"  initialized: {self._topics(group.topics.initialized)}")
            if group.topics.initializing:
                lines.append(f"  initializing: {self._topics(group.topics.initializing)}")
        return lines

    def _records(self) -> list[str]:
        entries = self._coordination.log.entries()
        new, self._seen = entries[self._seen :], len(entries)
        return [_described(entry) for _, entry in new if isinstance(entry, CoordinatorRecord)]

    def _pass(self, milliseconds: str) -> None:
        self._coordination.pass_ms(int(milliseconds))

    def _crash(self) -> None:
        self._coordination.load()

    # Names.

    def _topics(self, topics: StateTopics) -> str:
        return self._partition_names({key: topic.partitions for key, topic in topics.items()})

    def _partition_names(self, partitions: Any) -> str:
        topics = self._coordination.image.topics.by_id
        named = sorted((topics[key].name if key in topics else "deleted", key) for key in partitions)
        names = [f"{name}-{each}" for name, key in named for each in sorted(partitions[key])]
        return " ".join(names) or "nothing"


def _described(record: CoordinatorRecord) -> str:
    key: Any = record.key
    name = type(key).__name__.removesuffix("Key")
    return f"{name} {getattr(key, 'member_id', '')}".strip() + (" removed" if record.value is None else "")
