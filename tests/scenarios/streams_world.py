"""The commands of scenarios for streams groups, in addition to those for classic clients.

topology EPOCH                 begin a topology for the members to come
subtopology ID [sources=a,b] [sinks=r] [repartition=r:0,s:3] [changelogs=c] [copartition=a,r]
member NAME [process=P] [group=G] [endpoint=HOST:PORT]
streams_heartbeat NAME ...     send a heartbeat; prints epoch, tasks if sent, statuses and endpoints
streams_heartbeat_with NAME FIELD=VALUE ...   send a heartbeat with changed fields
delay_revocation NAME          keep revoked tasks
revoke NAME                    give up revoked tasks
rejoin NAME                    start again with epoch 0
streams_leave NAME [shutdown]  leave the group
create_missing                 create the internal topics that the last heartbeat found missing
commit_as NAME TOPIC PARTITION OFFSET [EPOCH] [version=V]   commit as a member
group_config GROUP NAME=VALUE  alter a config of a group
delete_topic TOPIC
describe GROUP                 print state and epochs of a group, and a line for each member
records                        print the records since the last time
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.groups.context import Requester
from moldau.groups.streams.group import StreamsGroup
from moldau.groups.streams.heartbeat import StreamsHeartbeat
from moldau.groups.streams.statuses import StatusCode
from moldau.groups.streams.tasks import TaskId, each_task
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import ResourceType
from moldau.protocol.messages.create_topics import CreatableTopic
from moldau.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.streams_group_heartbeat import Topology
from moldau.protocol.stored.metadata import ConfigRecord
from moldau.statemachine.coordinator_records import CoordinatorRecord
from tests.harness.clients.streams import StreamsClient, subtopology
from tests.scenarios.classic_world import ClassicWorld


class StreamsWorld(ClassicWorld):
    def __init__(self) -> None:
        super().__init__()
        self._members: dict[str, StreamsClient] = {}
        self._topology_sent = Topology(epoch=0)
        self._missing: Mapping[str, CreatableTopic] = {}
        self._seen = 0

    # Commands.

    def _topology(self, epoch: str) -> None:
        self._topology_sent = Topology(epoch=int(epoch))

    def _subtopology(self, subtopology_id: str, *settings: str) -> None:
        given = dict(each.split("=", 1) for each in settings)
        names = {key: tuple(value.split(",")) for key, value in given.items() if key != "repartition"}
        counts = (each.split(":") for each in given.get("repartition", "").split(",") if each)
        repartition = {name: int(count) for name, count in counts}
        made = subtopology(subtopology_id, repartition=repartition, **names)
        self._topology_sent.subtopologies.append(made)

    def _member(self, name: str, *settings: str) -> None:
        given = dict(each.split("=", 1) for each in settings)
        group = given.pop("group", "g")
        self._members[name] = StreamsClient(self._coordination, name, self._topology_sent, group, **given)

    def _streams_heartbeat(self, *names: str) -> list[str]:
        return [line for name in names for line in self._send(name)]

    def _streams_heartbeat_with(self, name: str, *settings: str) -> list[str]:
        given = dict(each.split("=", 1) for each in settings)
        return self._send(name, **{key: _value(value) for key, value in given.items()})

    def _streams_leave(self, name: str, shutdown: str = "") -> list[str]:
        try:
            result = self._members[name].leave(shutdown_application=bool(shutdown))
        except KafkaError as error:
            return [f"{name}: {error.code.name}: {error.message}"]
        return [f"{name}: epoch {result.response.member_epoch}"]

    def _send(self, name: str, **changes: Any) -> list[str]:
        try:
            result = self._members[name].heartbeat(**changes)
        except KafkaError as error:
            return [f"{name}: {error.code.name}: {error.message}"]
        self._missing = result.missing_topics
        return _answer(name, result)

    def _delay_revocation(self, *names: str) -> None:
        for name in names:
            self._members[name].delays_revocation = True

    def _revoke(self, *names: str) -> None:
        for name in names:
            self._members[name].revoke()

    def _rejoin(self, *names: str) -> None:
        for name in names:
            self._members[name].rejoin()

    def _create_missing(self) -> list[str]:
        created = [self._missing[name] for name in sorted(self._missing)]
        for topic in created:
            self._coordination.create_topic(topic.name, topic.num_partitions)
        self._missing = {}
        return [f"{topic.name} with {topic.num_partitions} partitions" for topic in created]

    def _delete_topic(self, name: str) -> None:
        self._coordination.delete_topic(name)
        self._coordination.pass_ms(0)

    def _group_config(self, group: str, setting: str) -> None:
        name, _, value = setting.partition("=")
        delta = MetadataDelta(self._coordination.image)
        delta.replay(
            ConfigRecord(resource_type=int(ResourceType.GROUP), resource_name=group, name=name, value=value)
        )
        self._coordination._changed(delta)

    def _commit_as(self, name: str, topic: str, partition: str, offset: str, *rest: str) -> list[str]:
        client = self._members[name]
        version = next((int(each[8:]) for each in rest if each.startswith("version=")), 9)
        epochs = [int(each) for each in rest if not each.startswith("version=")]
        request = OffsetCommitRequest(
            group_id=client.group_id,
            member_id=client.member_id,
            generation_id_or_member_epoch=epochs[0] if epochs else client.epoch,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=int(partition), committed_offset=int(offset)
                        )
                    ],
                )
            ],
        )
        requester = Requester(version, name, "/127.0.0.1")
        try:
            answer = self._coordination.answer(lambda shard: shard.commit_offsets(requester, request))
        except KafkaError as error:
            return [f"{name}: {error.code.name}: {error.message}"]
        return [f"{name}: {ErrorCode(answer.topics[0].partitions[0].error_code).name}"]

    def _describe(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, StreamsGroup):
            return ["does not exist"] if group is None else [f"a {group.type} group, {group.state_name}"]
        lines = [f"{group.state_name}, epoch {group.epoch}, target {group.assignment_epoch}"]
        for member in sorted(group.members.values(), key=lambda each: each.member_id):
            line = f"  {member.member_id}: {member.state.name}, epoch {member.member_epoch}"
            line += f", previous {member.previous_member_epoch}"
            line += f", active {_names(each_task(member.assigned.active))}"
            if member.assigned.standby:
                line += f", standby {_names(each_task(member.assigned.standby))}"
            if not member.pending_revocation.is_empty:
                revoked = member.pending_revocation
                line += f", to revoke {_names([*each_task(revoked.active), *each_task(revoked.standby)])}"
            lines.append(line)
        return lines

    def _records(self) -> list[str]:
        entries = self._coordination.log.entries()
        new, self._seen = entries[self._seen :], len(entries)
        return [_described(entry) for _, entry in new if isinstance(entry, CoordinatorRecord)]


def _answer(name: str, result: StreamsHeartbeat) -> list[str]:
    response = result.response
    line = f"{name}: epoch {response.member_epoch}"
    if response.active_tasks is not None and response.standby_tasks is not None:
        active = [TaskId(each.subtopology_id, p) for each in response.active_tasks for p in each.partitions]
        standby = [TaskId(each.subtopology_id, p) for each in response.standby_tasks for p in each.partitions]
        line += f", active {_names(active)}"
        if standby:
            line += f", standby {_names(standby)}"
    lines = [line]
    for each in response.partitions_by_user_endpoint or ():
        endpoint = f"{each.user_endpoint.host}:{each.user_endpoint.port}"
        active_partitions = [
            f"{found.topic}-{p}" for found in each.active_partitions for p in found.partitions
        ]
        lines.append(f"  {endpoint} serves {' '.join(active_partitions) or 'nothing'}")
    lines += [
        f"  {StatusCode(each.status_code).name}: {each.status_detail}" for each in response.status or ()
    ]
    return lines


def _names(tasks: Iterable[TaskId]) -> str:
    return " ".join(f"{task.subtopology_id}_{task.partition}" for task in sorted(tasks)) or "nothing"


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else None if text == "null" else text


def _described(record: CoordinatorRecord) -> str:
    key: Any = record.key
    name = type(key).__name__.removesuffix("Key")
    return f"{name} {getattr(key, 'member_id', '')}".strip() + (" removed" if record.value is None else "")
