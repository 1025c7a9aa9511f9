"""The commands of scenarios about share groups.

topic NAME PARTITIONS | drop NAME
member NAME [topics=a,b] [group=G]
beat NAME ...                  a heartbeat each; `A: epoch 2, assigned orders-0` when it hears an assignment
say NAME FIELD=VALUE ...       a heartbeat with other numbers or texts in it
depart NAME                    leaves the group
made | failed                  what the share coordinator was asked for is there, or is not
state GROUP                    state and epochs of a group, a line for each member, its partitions with state
records                        what was stored since the last time
pass MS | restart
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

    def _drop(self, name: str) -> None:
        self._coordination.delete_topic(name)
        self._coordination.pass_ms(0)

    def _member(self, name: str, *settings: str) -> None:
        given = dict(each.split("=", 1) for each in settings)
        self._members[name] = (given.get("group", "g"), given.get("topics", "orders").split(","))
        self._epochs[name] = 0

    def _beat(self, *names: str) -> list[str]:
        return [f"{name}: {self._heard(name)}" for name in names]

    def _say(self, name: str, *settings: str) -> list[str]:
        given: dict[str, Any] = dict(each.split("=", 1) for each in settings)
        fields = {key: int(value) if value.lstrip("-").isdigit() else value for key, value in given.items()}
        if "topics" in fields:
            fields["subscribed_topic_names"] = fields.pop("topics").split(",")
        return [f"{name}: {self._heard(name, **fields)}"]

    def _depart(self, name: str) -> list[str]:
        heard = self._heard(name, member_epoch=-1)
        self._epochs[name] = 0
        return [f"{name}: {heard}"]

    def _heard(self, name: str, **fields: Any) -> str:
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
        return f"epoch {answer.member_epoch}, assigned {self._places(found)}"

    def _made(self) -> list[str]:
        return self._coordinated("initialized")

    def _failed(self) -> list[str]:
        return self._coordinated("not_initialized")

    def _coordinated(self, outcome: str) -> list[str]:
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
            printed.append(f"{self._places(topics)} in epoch {each.state_epoch}")
        return printed or ["nothing was asked for"]

    def _state(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ShareGroup):
            return [f"{group_id} is not there"]
        lines = [f"{group.state_name}, epoch {group.epoch}, target {group.assignment_epoch}"]
        for member in sorted(group.members.values(), key=lambda each: each.member_id):
            lines.append(
                f"  {member.member_id}: epoch {member.member_epoch}, before {member.previous_member_epoch}, "
                f"has {self._places(member.assigned)}"
            )
        if group.topics is not None:
            lines.append(f"  state: {self._topics(group.topics.initialized)}")
            if group.topics.initializing:
                lines.append(f"  being made: {self._topics(group.topics.initializing)}")
        return lines

    def _records(self) -> list[str]:
        entries = self._coordination.log.entries()
        new, self._seen = entries[self._seen :], len(entries)
        return [_described(entry) for _, entry in new if isinstance(entry, CoordinatorRecord)]

    def _pass(self, milliseconds: str) -> None:
        self._coordination.pass_ms(int(milliseconds))

    def _restart(self) -> None:
        self._coordination.load()

    # Names.

    def _topics(self, topics: StateTopics) -> str:
        return self._places({key: topic.partitions for key, topic in topics.items()})

    def _places(self, partitions: Any) -> str:
        topics = self._coordination.image.topics.by_id
        named = sorted((topics[key].name if key in topics else "gone", key) for key in partitions)
        places = [f"{name}-{each}" for name, key in named for each in sorted(partitions[key])]
        return " ".join(places) or "nothing"


def _described(record: CoordinatorRecord) -> str:
    key: Any = record.key
    name = type(key).__name__.removesuffix("Key")
    return f"{name} {getattr(key, 'member_id', '')}".strip() + (" removed" if record.value is None else "")
