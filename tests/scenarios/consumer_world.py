"""The commands of scenarios for consumer groups, in addition to those for classic clients.

member NAME [instance=I] [topics=a,b] [regex=R] [assignor=A] [rebalance=MS] [version=V] [id=MEMBER_ID]
heartbeat NAME ...             send a heartbeat; prints `A: epoch 2, assigned orders-0`
delay_revocation NAME          keep revoked partitions
revoke NAME                    give up revoked partitions
subscribe NAME [topics=a,b] [regex=R]
rejoin NAME                    start again with epoch 0
leave NAME                     leave the group
leave_temporarily NAME         leave as a static member, with epoch -2
heartbeat_with NAME FIELD=VALUE ...   send a heartbeat with changed fields
resolve_regexes                execute the effects ResolveRegexes
delete_topic TOPIC
describe GROUP                 print state and epochs of a group, and a line for each member
records                        print the records since the last time
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import TopicId
from moldau.groups.consumer.group import ConsumerGroup
from moldau.groups.consumer.member import ConsumerMember
from moldau.groups.embedded_protocol import decode_assignment
from moldau.groups.modern.regex import resolve_regexes
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.protocol.schema import encode_bytes
from moldau.protocol.stored.consumer_protocol import AssignmentTopicPartition, ConsumerProtocolAssignment
from moldau.statemachine.coordinator_records import CoordinatorRecord
from moldau.statemachine.decision import Promise
from tests.harness.clients.classic import ClassicClient
from tests.harness.clients.consumer import ConsumerClient
from tests.scenarios.classic_world import ClassicWorld


class ConsumerWorld(ClassicWorld):
    def __init__(self) -> None:
        super().__init__()
        self._members: dict[str, ConsumerClient] = {}
        self._seen = 0

    # Commands.

    def _member(self, name: str, *settings: str) -> None:
        given = _settings(settings)
        self._members[name] = ConsumerClient(self._coordination, name, given.pop("group", "g"), **given)

    def _heartbeat(self, *names: str) -> list[str] | None:  # type: ignore[override]
        if names[0] in self._clients:
            return super()._heartbeat(*names)  # type: ignore[func-returns-value]
        return [f"{name}: {self._send(name)}" for name in names]

    def _heartbeat_with(self, name: str, *settings: str) -> list[str]:
        return [f"{name}: {self._send(name, **_settings(settings))}"]

    def _send(self, name: str, **changes: Any) -> str:
        try:
            answer = self._members[name].heartbeat(**changes)
        except KafkaError as error:
            return f"{error.code.name}: {error.message}"
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}"
        assigned = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return f"epoch {answer.member_epoch}, assigned {self._partition_names(assigned)}"

    def _delay_revocation(self, *names: str) -> None:
        for name in names:
            self._members[name].delays_revocation = True

    def _revoke(self, *names: str) -> None:
        for name in names:
            self._members[name].revoke()

    def _rejoin(self, *names: str) -> None:
        for name in names:
            self._members[name].rejoin()

    def _subscribe(self, name: str, *settings: str) -> None:
        given = _settings(settings)
        self._members[name].subscribe(given.get("topics", []), given.get("regex", ""))

    def _leave(self, *names: str) -> list[str] | None:  # type: ignore[override]
        if names[0] in self._clients:
            return super()._leave(*names)  # type: ignore[func-returns-value]
        return [line for name in names for line in self._leave_with(name, -1)]

    def _leave_temporarily(self, name: str) -> list[str]:
        return self._leave_with(name, -2)

    def _leave_with(self, name: str, epoch: int) -> list[str]:
        try:
            return [f"{name}: epoch {self._members[name].leave(epoch).member_epoch}"]
        except KafkaError as error:
            return [f"{name}: {error.code.name}: {error.message}"]

    def _resolve_regexes(self) -> None:
        effects = list(self._coordination.effects)
        self._coordination.effects.clear()
        for each in effects:
            found = resolve_regexes(each)
            self._coordination.answer(
                lambda shard, each=each, found=found: shard.regexes_resolved(each.group_id, found)
            )

    def _delete_topic(self, topic: str) -> None:
        self._coordination.delete_topic(topic)

    def _describe(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ConsumerGroup):
            return super()._describe(group_id)
        members = sorted(group.members.values(), key=lambda each: each.member_id)
        epochs = f"epoch {group.epoch}, target {group.assignment_epoch}"
        return [f"{group.state_name}, {epochs}", *(self._line(group, each) for each in members)]

    def _line(self, group: ConsumerGroup, member: ConsumerMember) -> str:
        parts = [
            f"  {self._who(member.member_id)}: epoch {member.member_epoch}",
            f"previous {member.previous_member_epoch}",
            member.state.name.lower(),
            f"assigned {self._partition_names(member.assigned)}",
        ]
        if member.pending_revocation:
            parts.append(f"pending revocation {self._partition_names(member.pending_revocation)}")
        target = group.targets.get(member.member_id, {})
        if {key: set(owned) for key, owned in member.assigned.items()} != {
            key: set(owned) for key, owned in target.items()
        }:
            parts.append(f"target {self._partition_names(target)}")
        if member.uses_classic_protocol:
            parts.append("classic")
        return ", ".join(parts)

    def _records(self) -> list[str]:
        entries = self._coordination.log.entries()
        new, self._seen = entries[self._seen :], len(entries)
        return [_described(entry) for _, entry in new if isinstance(entry, CoordinatorRecord)]

    # Names.

    def _who(self, member_id: str) -> str:
        for name, client in self._members.items():
            if client.member_id == member_id:
                return name
        return self._name_of(member_id) if member_id in self._ids() else "unknown"

    def _ids(self) -> set[str]:
        return {each.member_id for each in self._clients.values()}

    def _partition_names(self, partitions: Any) -> str:
        topics = self._coordination.image.topics.by_id
        named = sorted((topics[key].name if key in topics else "deleted", key) for key in partitions)
        return (
            " ".join(f"{name}-{each}" for name, key in named for each in sorted(partitions[key])) or "nothing"
        )

    # Classic clients use the embedded consumer protocol, so that the coordinator can decode it.

    def _range(self, leader: ClassicClient) -> dict[str, bytes]:
        return {member_id: _encoded(text.decode()) for member_id, text in super()._range(leader).items()}

    def _joined(self, answer: JoinGroupResponse) -> str:
        if not answer.leader:
            return f"generation {answer.generation_id}, {answer.protocol_name}"
        return super()._joined(answer)

    def _text(self, promise: Promise[Any]) -> str:
        response = promise.value
        if promise.error is None and response is None:
            return "nothing"
        if isinstance(response, SyncGroupResponse) and response.error_code == ErrorCode.NONE:
            by_name = self._coordination.image.topics.by_name
            found: dict[TopicId, list[int]] = {
                by_name[each.topic].id: each.partitions
                for each in decode_assignment(bytes(response.assignment)).assigned_partitions
            }
            return f"assigned {self._partition_names(found)}"
        return super()._text(promise)


def _settings(settings: tuple[str, ...]) -> dict[str, Any]:
    given: dict[str, Any] = dict(each.split("=", 1) for each in settings)
    if "topics" in given:
        given["topics"] = [each for each in given["topics"].split(",") if each]
    return {
        key: int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value
        for key, value in given.items()
    }


def _encoded(text: str) -> bytes:
    topics: dict[str, list[int]] = {}
    for name in text.split():
        topic, _, partition = name.rpartition("-")
        topics.setdefault(topic, []).append(int(partition))
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignmentTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
    )
    return b"\x00\x00" + encode_bytes(message, 0)


def _described(record: CoordinatorRecord) -> str:
    key: Any = record.key
    name = type(key).__name__.removesuffix("Key")
    extra = getattr(key, "member_id", getattr(key, "regular_expression", ""))
    return f"{name} {extra}".strip() + (" removed" if record.value is None else "")
