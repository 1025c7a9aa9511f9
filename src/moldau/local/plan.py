"""Roles, ports and properties of the nodes of a cluster on one machine.

A single node has both roles, and its internal topics one replica. A cluster of several nodes has a
`ClusterPlan`: with three brokers or more it has replication factor 3 and `min.insync.replicas` 2, so that
one node may be down at any time (with fewer brokers the latter is 1). Its quorum is dynamic (KIP-853). The
voters are formatted with their addresses, so the plan is stored beside the data, in `cluster.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from moldau.base.ids import Randomness, format_uuid, random_uuid
from moldau.config.quorum_voters import DynamicVoter

BROKER_LISTENER: Final = "PLAINTEXT"
CONTROLLER_LISTENER: Final = "CONTROLLER"
FILE_NAME: Final = "cluster.json"
PROPERTIES_FILE: Final = "server.properties"
#: The number of combined nodes that are voters, in a cluster without dedicated controllers.
_COMBINED_VOTERS: Final = 3
_REPLICATION_FACTOR: Final = 3


def single_node_properties(host: str, port: int, controller_port: int, folder: str) -> dict[str, str]:
    """Return the properties of a node that is a cluster of its own. Port 0 means any free port."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},{CONTROLLER_LISTENER}://{host}:{controller_port}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": f"{host}:{controller_port or 9093}",
        "log.dirs": folder,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


@dataclass(frozen=True, slots=True)
class Member:
    """A node of the cluster; the port of a role that it does not have is None."""

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
    #: The first voters, in the format of `kafka-storage format --initial-controllers`.
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
        """Load the plan of the cluster whose data is in `folder`; None if there is none."""
        try:
            kept = json.loads((folder / FILE_NAME).read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None
        members = tuple(Member(**each) for each in kept.pop("members"))
        return cls(**kept, members=members)

    def save(self, folder: Path) -> None:
        (folder / FILE_NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")

    def properties(self, member: Member, folder: Path) -> dict[str, str]:
        """Return the properties of a node with its data in `folder`."""
        controllers = [each.controller_port for each in self.members if each.controller_port is not None]
        brokers = sum(each.port is not None for each in self.members)
        replication_factor = str(min(_REPLICATION_FACTOR, brokers))
        min_isr = "2" if brokers >= _REPLICATION_FACTOR else "1"
        return {
            "process.roles": member.roles,
            "node.id": str(member.id),
            "listeners": ",".join(f"{name}://{self.host}:{port}" for name, port in member.ports.items()),
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.bootstrap.servers": ",".join(f"{self.host}:{port}" for port in controllers),
            "log.dirs": str(folder / "logs"),
            "default.replication.factor": replication_factor,
            "min.insync.replicas": min_isr,
            "offsets.topic.replication.factor": replication_factor,
            "transaction.state.log.replication.factor": replication_factor,
            "transaction.state.log.min.isr": min_isr,
            "share.coordinator.state.topic.replication.factor": replication_factor,
            "share.coordinator.state.topic.min.isr": min_isr,
            "group.initial.rebalance.delay.ms": "0",
        }

    def format_options(self, member: Member) -> dict[str, str | bool]:
        """Return the arguments of `FormatOptions` for the node's folders."""
        options: dict[str, str | bool] = {"cluster_id": self.cluster_id, "standalone": False}
        if member.controller_port is not None:
            options["initial_controllers"] = self.initial_controllers
        return options


def roles_of(brokers: int, controllers: int) -> list[tuple[bool, bool]]:
    """Return for each node whether it is a broker and whether it is a controller.

    Without dedicated `controllers`, the first three brokers are also controllers.
    """
    if controllers:
        return [(True, False)] * brokers + [(False, True)] * controllers
    return [(True, number < _COMBINED_VOTERS) for number in range(brokers)]


def node_folder(folder: Path, node_id: int) -> Path:
    return folder / f"node-{node_id}"


def write_properties(folder: Path, properties: Mapping[str, str]) -> Path:
    """Write a properties file for `kafka-server-start`, creating `folder` if needed.

    Only the owner can read it: it may contain passwords.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / PROPERTIES_FILE
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file
