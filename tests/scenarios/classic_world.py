"""The commands of scenarios about classic groups.

    config NAME=VALUE ...          settings of the broker, before anything else
    topic NAME PARTITIONS          creates a topic, or gives it more partitions
    client NAME [instance=I] [protocols=a,b] [topics=a,b] [session=MS] [rebalance=MS] [type=T] [version=V]
    join NAME ...                  each joins, twice if it is told a member id
    sync NAME ...                  each asks for its assignment; a leader assigns first, by the range of names
    heartbeat NAME ...
    leave NAME ...
    forget NAME                    the client loses its member id, as after a restart
    commit NAME TOPIC PARTITION OFFSET
    offsets GROUP                  what the group has committed
    pass MS                        time passes
    group GROUP                    its state, generation, leader and members
    crash                          another coordinator takes over what is stored
    delete GROUP

Whatever is answered is printed when it is: `A: generation 1, leads A B`.
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode
from moldau.groups.classic.group import ClassicGroup
from moldau.protocol.messages.join_group import JoinGroupResponse
from moldau.protocol.messages.sync_group import SyncGroupResponse
from moldau.statemachine.decision import Promise
from tests.harness.clients.classic import ClassicClient, fetched
from tests.harness.worlds.coordination import Coordination


class ClassicWorld:
    def __init__(self) -> None:
        self._coordination = Coordination()
        self._clients: dict[str, ClassicClient] = {}
        self._waiting: list[tuple[str, Promise[Any]]] = []
        self._partitions: dict[str, int] = {}

    def run(self, line: str) -> list[str]:
        command, *arguments = line.split()
        printed: list[str] = getattr(self, "_" + command)(*arguments) or []
        return printed + self._arrived()

    def _arrived(self) -> list[str]:
        """What was answered since the last time."""
        waiting, self._waiting = self._waiting, []
        lines = []
        for name, promise in waiting:
            if promise.settled:
                lines.append(f"{name}: {self._told(promise)}")
            else:
                self._waiting.append((name, promise))
        return lines

    def _told(self, promise: Promise[Any]) -> str:
        answer = promise.value
        if promise.error is not None:
            return promise.error.code.name
        if isinstance(answer, JoinGroupResponse) and answer.error_code == ErrorCode.NONE:
            return self._joined(answer)
        if isinstance(answer, SyncGroupResponse) and answer.error_code == ErrorCode.NONE:
            return f"assigned {answer.assignment.decode() or 'nothing'}"
        codes = [
            getattr(answer, "error_code", ErrorCode.NONE),
            *(each.error_code for each in getattr(answer, "members", ())),
        ]
        for topic in getattr(answer, "topics", ()):
            codes += [each.error_code for each in topic.partitions]
        failed = [ErrorCode(code).name for code in codes if code]
        return ", ".join(failed) or "done"

    def _joined(self, answer: JoinGroupResponse) -> str:
        role = f"follows {self._name_of(answer.leader)}"
        if answer.members:
            names = sorted(self._name_of(each.member_id) for each in answer.members)
            role = f"leads {' '.join(names)}"
        skip = ", need not assign" if answer.skip_assignment else ""
        return f"generation {answer.generation_id}, {answer.protocol_name}, {role}{skip}"

    def _name_of(self, member_id: str) -> str:
        known = [each.name for each in self._clients.values() if each.member_id == member_id]
        return known[0] if known else "-".join(member_id.split("-")[:-5]) + "(former)"

    # Commands.

    def _config(self, *settings: str) -> None:
        self._coordination = Coordination(dict(each.split("=", 1) for each in settings))

    def _topic(self, name: str, partitions: str) -> None:
        self._partitions[name] = int(partitions)
        self._coordination.create_topic(name, int(partitions))

    def _client(self, name: str, *settings: str) -> None:
        given: dict[str, Any] = dict(each.split("=", 1) for each in settings)
        for key in ("protocols", "topics"):
            if key in given:
                given[key] = given[key].split(",")
        for key in ("session", "rebalance", "version"):
            if key in given:
                given[key] = int(given[key])
        group_id = given.pop("group", "g")
        self._clients[name] = ClassicClient(self._coordination, name, group_id, **given)

    def _join(self, *names: str) -> None:
        for name in names:
            self._waiting.append((name, self._clients[name].join()))

    def _sync(self, *names: str) -> None:
        for name in sorted(names, key=lambda each: not self._clients[each].leads):
            client = self._clients[name]
            self._waiting.append((name, client.sync(self._range(client))))

    def _range(self, leader: ClassicClient) -> dict[str, bytes]:
        """Every topic cut into one piece for each member, in the order of their names."""
        if leader.joined is None or not leader.joined.members:
            return {}
        members = sorted((self._name_of(each.member_id), each.member_id) for each in leader.joined.members)
        given: dict[str, list[str]] = {member_id: [] for _, member_id in members}
        for topic in leader.topics:
            count = self._partitions.get(topic, 0)
            for index in range(count):
                _, member_id = members[index * len(members) // max(count, len(members))]
                given[member_id].append(f"{topic}-{index}")
        return {member_id: " ".join(parts).encode() for member_id, parts in given.items()}

    def _heartbeat(self, *names: str) -> None:
        for name in names:
            self._waiting.append((name, self._clients[name].heartbeat()))

    def _leave(self, *names: str) -> None:
        for name in names:
            self._waiting.append((name, self._clients[name].leave()))

    def _forget(self, name: str) -> None:
        self._clients[name].member_id = ""

    def _commit(self, name: str, topic: str, partition: str, offset: str) -> None:
        promise = self._clients[name].commit(topic, int(partition), int(offset))
        self._waiting.append((name, promise))

    def _offsets(self, group_id: str) -> list[str]:
        found = fetched(self._coordination.shard, group_id)
        return [f"{topic}-{partition} at {offset}" for (topic, partition), offset in sorted(found.items())]

    def _pass(self, milliseconds: str) -> None:
        self._coordination.pass_ms(int(milliseconds))

    def _group(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ClassicGroup):
            return ["no such group"]
        names = sorted(self._name_of(each) for each in group.members)
        leader = f", led by {self._name_of(group.leader)}" if group.leader else ""
        members = ", ".join(names) or "nobody"
        return [f"{group.state_name}, generation {group.generation}{leader}: {members}"]

    def _crash(self) -> None:
        self._waiting.clear()
        self._coordination.load()

    def _delete(self, group_id: str) -> list[str]:
        results = self._coordination.answer(lambda shard: shard.delete_groups([group_id]))
        return [ErrorCode(each.error_code).name for each in results]
