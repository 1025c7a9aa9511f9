"""The commands of scenarios for classic groups.

    config NAME=VALUE ...          broker configs; must be the first command
    topic NAME PARTITIONS          create a topic, or add partitions
    client NAME [instance=I] [protocols=a,b] [topics=a,b] [session=MS] [rebalance=MS] [type=T] [version=V]
    join NAME ...                  join; join again after MEMBER_ID_REQUIRED
    sync NAME ...                  send SyncGroup; leaders first, with a range assignment by name
    heartbeat NAME ...
    leave NAME ...
    forget_member_id NAME          restart the client: it loses its member id
    commit NAME TOPIC PARTITION OFFSET
    offsets GROUP                  print the committed offsets
    pass MS                        let time pass
    describe GROUP                 print state, generation, leader and members
    crash                          load a new coordinator from the log
    delete GROUP

Responses are printed when they arrive: `A: generation 1, range, leader of A B`.
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
        return printed + self._new_responses()

    def _new_responses(self) -> list[str]:
        """Return the responses since the last command."""
        waiting, self._waiting = self._waiting, []
        lines = []
        for name, promise in waiting:
            if promise.settled:
                lines.append(f"{name}: {self._text(promise)}")
            else:
                self._waiting.append((name, promise))
        return lines

    def _text(self, promise: Promise[Any]) -> str:
        response = promise.value
        if promise.error is not None:
            return promise.error.code.name
        if isinstance(response, JoinGroupResponse) and response.error_code == ErrorCode.NONE:
            return self._joined(response)
        if isinstance(response, SyncGroupResponse) and response.error_code == ErrorCode.NONE:
            return f"assigned {response.assignment.decode() or 'nothing'}"
        codes = [
            getattr(response, "error_code", ErrorCode.NONE),
            *(each.error_code for each in getattr(response, "members", ())),
        ]
        for topic in getattr(response, "topics", ()):
            codes += [each.error_code for each in topic.partitions]
        failed = [ErrorCode(code).name for code in codes if code]
        return ", ".join(failed) or "ok"

    def _joined(self, response: JoinGroupResponse) -> str:
        role = f"follower of {self._name_of(response.leader)}"
        if response.members:
            names = sorted(self._name_of(each.member_id) for each in response.members)
            role = f"leader of {' '.join(names)}"
        skip = ", skips the assignment" if response.skip_assignment else ""
        return f"generation {response.generation_id}, {response.protocol_name}, {role}{skip}"

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
        """Assign a range of every topic to each member, in the order of names."""
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

    def _forget_member_id(self, name: str) -> None:
        self._clients[name].member_id = ""

    def _commit(self, name: str, topic: str, partition: str, offset: str) -> None:
        promise = self._clients[name].commit(topic, int(partition), int(offset))
        self._waiting.append((name, promise))

    def _offsets(self, group_id: str) -> list[str]:
        found = fetched(self._coordination.shard, group_id)
        return [f"{topic}-{partition} at {offset}" for (topic, partition), offset in sorted(found.items())]

    def _pass(self, milliseconds: str) -> None:
        self._coordination.pass_ms(int(milliseconds))

    def _describe(self, group_id: str) -> list[str]:
        group = self._coordination.shard.registry.find(group_id)
        if not isinstance(group, ClassicGroup):
            return [f"{group_id} does not exist"]
        names = sorted(self._name_of(each) for each in group.members)
        leader = f", leader {self._name_of(group.leader)}" if group.leader else ""
        members = ", ".join(names) or "no members"
        return [f"{group.state_name}, generation {group.generation}{leader}: {members}"]

    def _crash(self) -> None:
        self._waiting.clear()
        self._coordination.load()

    def _delete(self, group_id: str) -> list[str]:
        results = self._coordination.answer(lambda shard: shard.delete_groups([group_id]))
        return [ErrorCode(each.error_code).name for each in results]
