"""The plan of a cluster of several nodes on one machine: who has which role and port, and its settings.

Three copies of everything where there are three brokers, two of which must have a record before it counts
(with fewer brokers: one), so that one node may be missing at any time. The quorum is a dynamic one. Its
voters are known by their addresses from the first start on, so the plan is kept beside the data, in
`cluster.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from moldau.base.ids import Randomness, format_uuid, random_uuid
from moldau.config.quorum_voters import DynamicVoter
from moldau.local.single_node import CONTROLLER_LISTENER

BROKER_LISTENER: Final = "PLAINTEXT"
FILE_NAME: Final = "cluster.json"
PROPERTIES_FILE: Final = "server.properties"
#: So many nodes of a cluster vote when none is a controller alone.
_COMBINED_VOTERS: Final = 3
_COPIES: Final = 3


@dataclass(frozen=True, slots=True)
class Member:
    """A node. The port of a role that it does not have is None."""

    id: int
    port: int | None
    controller_port: int | None

    @property
    def ports(self) -> dict[str, int]:
        ports = {BROKER_LISTENER: self.port, CONTROLLER_LISTENER: self.controller_port}
        return {name: port for name, port in ports.items() if port is not None}

    @property
    def roles(self) -> str:
        roles = {"broker": self.port, "controller": self.controller_port}
        return ",".join(role for role, port in roles.items() if port is not None)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    host: str
    cluster_id: str
    members: tuple[Member, ...]
    #: The first voters, as `kafka-storage format --initial-controllers` wants them.
    initial_controllers: str

    @classmethod
    def make(cls, host: str, members: tuple[Member, ...], randomness: Randomness) -> ClusterPlan:
        voters = [
            str(DynamicVoter(each.id, random_uuid(randomness), host, each.controller_port))
            for each in members
            if each.controller_port is not None
        ]
        return cls(host, format_uuid(random_uuid(randomness)), members, ",".join(voters))

    @classmethod
    def load(cls, folder: Path) -> ClusterPlan | None:
        """The plan of the cluster whose data is there; None if there is none."""
        try:
            kept = json.loads((folder / FILE_NAME).read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        members = tuple(Member(**each) for each in kept.pop("members"))
        return cls(**kept, members=members)

    def save(self, folder: Path) -> None:
        (folder / FILE_NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")

    def properties(self, member: Member, folder: Path) -> dict[str, str]:
        """What stands in the properties file of a node whose folder this is."""
        controllers = [each.controller_port for each in self.members if each.controller_port is not None]
        brokers = sum(each.port is not None for each in self.members)
        copies = str(min(_COPIES, brokers))
        enough = "2" if brokers >= _COPIES else "1"
        return {
            "process.roles": member.roles,
            "node.id": str(member.id),
            "listeners": ",".join(f"{name}://{self.host}:{port}" for name, port in member.ports.items()),
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(f"{self.host}:{port}" for port in controllers),
            "log.dirs": str(folder / "logs"),
            "default.replication.factor": copies,
            "min.insync.replicas": enough,
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": enough,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": enough,
            "group.initial.rebalance.delay.ms": "0",
        }

    def format_options(self, member: Member) -> dict[str, str | bool]:
        """How the node's folders are formatted, in the words of `FormatOptions`."""
        options: dict[str, str | bool] = {"cluster_id": self.cluster_id, "standalone": False}
        if member.controller_port is not None:
            options["initial_controllers"] = self.initial_controllers
        return options


def roles_of(brokers: int, controllers: int) -> list[tuple[bool, bool]]:
    """For each node whether it is a broker and whether it is a controller. Without nodes that are only
    controllers the first brokers are both."""
    if controllers:
        return [(True, False)] * brokers + [(False, True)] * controllers
    return [(True, number < _COMBINED_VOTERS) for number in range(brokers)]


def node_folder(folder: Path, node_id: int) -> Path:
    return folder / f"node-{node_id}"


def write_properties(folder: Path, properties: Mapping[str, str]) -> Path:
    """A file that `kafka-server-start` takes; the folder is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / PROPERTIES_FILE
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file
