"""The commands of scenarios about consumer groups, beside those of classic clients, which may be in them too.

member NAME [instance=I] [topics=a,b] [regex=R] [assignor=A] [rebalance=MS] [version=V] [id=MEMBER_ID]
beat NAME ...                  a heartbeat each; `A: epoch 2, assigned orders-0` when it hears an assignment
slow NAME                      goes on to own what it was told to give up
hurry NAME                     gives it up
subscribe NAME [topics=a,b] [regex=R]
rejoin NAME                    begins anew with epoch 0
depart NAME                    leaves the group
pause NAME                     a static member leaves for a while
say NAME FIELD=VALUE ...       a heartbeat with other numbers or texts in it
resolve                        the regular expressions that wait for it are matched
drop TOPIC                     deletes a topic
state GROUP                    state and epochs of a group, and a line for each member
records                        what was stored since the last time
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

    def _beat(self, *names: str) -> list[str]:
        return [f"{name}: {self._heard(name)}" for name in names]

    def _say(self, name: str, *settings: str) -> list[str]:
        return [f"{name}: {self._heard(name, **_settings(settings))}"]

    def _heard(self, name: str, **changes: Any) -> str:
        try:
            answer = self._members[name].beat(**changes)
        except KafkaError as error:
            return f"{error.code.name}: {error.message}"
        if answer.assignment is None:
            return f"epoch {answer.member_epoch}"
        assigned = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return f"epoch {answer.member_epoch}, assigned {self._places(assigned)}"

    def _slow(self, *names: str) -> None:
        for name in names:
            self._members[name].slow = True

    def _hurry(self, *names: str) -> None:
        for name in names:
            self._members[name].hurry()

    def _rejoin(self, *names: str) -> None:
        for name in names:
            self._members[name].rejoin()

    def _subscribe(self, name: str, *settings: str) -> None:
        given = _settings(settings)
        self._members[name].subscribe(given.get("topics", []), given.get("regex", ""))

    def _depart(self, name: str) -> list[str]:
        return self._leaves(name, -1)

    def _pause(self, name: str) -> list[str]:
        return self._leaves(name, -2)

    def _leaves(self, name: str, epoch: int) -> list[str]:
        try:
            return [f"{name}: epoch {self._members[name].leave(epoch).member_epoch}"]
        except KafkaError as error:
            return [f"{name}: {error.code.name}: {error.message}"]

    def _resolve(self) -> None:
        effects = list(self._coordination.effects)
        self._coordination.effects.clear()
        for each in effects:
            found = resolve_regexes(each)
            self._coordination.answer(
                lambda shard, each=each, found=found: shard.regexes_resolved(each.group_id, found)
            )

    def _drop(self, topic: str) -> None:
        self._coordination.delete_topic(topic)

    def _state(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ConsumerGroup):
            return [f"{group_id} is {'not there' if group is None else 'a ' + group.type + ' group'}"]
        members = sorted(group.members.values(), key=lambda each: each.member_id)
        epochs = f"epoch {group.epoch}, target {group.assignment_epoch}"
        return [f"{group.state_name}, {epochs}", *(self._line(group, each) for each in members)]

    def _line(self, group: ConsumerGroup, member: ConsumerMember) -> str:
        parts = [
            f"  {self._who(member.member_id)}: epoch {member.member_epoch}",
            f"before {member.previous_member_epoch}",
            member.state.name.lower(),
            f"has {self._places(member.assigned)}",
        ]
        if member.pending_revocation:
            parts.append(f"is to give up {self._places(member.pending_revocation)}")
        target = group.targets.get(member.member_id, {})
        if {key: set(owned) for key, owned in member.assigned.items()} != {
            key: set(owned) for key, owned in target.items()
        }:
            parts.append(f"target {self._places(target)}")
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
        return self._name_of(member_id) if member_id in self._ids() else "somebody"

    def _ids(self) -> set[str]:
        return {each.member_id for each in self._clients.values()}

    def _places(self, partitions: Any) -> str:
        topics = self._coordination.image.topics.by_id
        named = sorted((topics[key].name if key in topics else "gone", key) for key in partitions)
        return (
            " ".join(f"{name}-{each}" for name, key in named for each in sorted(partitions[key])) or "nothing"
        )

    # Classic clients speak the consumers' own protocol in full, so that the coordinator can read it.

    def _range(self, leader: ClassicClient) -> dict[str, bytes]:
        return {member_id: _encoded(text.decode()) for member_id, text in super()._range(leader).items()}

    def _joined(self, answer: JoinGroupResponse) -> str:
        if not answer.leader:
            return f"generation {answer.generation_id}, {answer.protocol_name}"
        return super()._joined(answer)

    def _told(self, promise: Promise[Any]) -> str:
        answer = promise.value
        if promise.error is None and answer is None:
            return "nothing"
        if isinstance(answer, SyncGroupResponse) and answer.error_code == ErrorCode.NONE:
            by_name = self._coordination.image.topics.by_name
            found: dict[TopicId, list[int]] = {
                by_name[each.topic].id: each.partitions
                for each in decode_assignment(bytes(answer.assignment)).assigned_partitions
            }
            return f"assigned {self._places(found)}"
        return super()._told(promise)


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
    for place in text.split():
        topic, _, partition = place.rpartition("-")
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
