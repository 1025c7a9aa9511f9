"""The parts of a `Cluster`: roles, properties, folders and ports of its nodes, and the cut links.

The first three brokers are also controllers, or there are dedicated controllers, whose ids follow those of
the brokers. Ports are reserved before the first start and stay reserved while a node is down. Nodes of a
larger cluster are formatted with each other's ports, which are therefore stored beside the data
(`local/plan.py`).
"""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from moldau.local.launcher import NodeFailed, StartRequest
from moldau.local.plan import (
    BROKER_LISTENER,
    CONTROLLER_LISTENER,
    ClusterPlan,
    Member,
    node_folder,
    roles_of,
    single_node_properties,
    write_properties,
)
from moldau.local.ports import ReservedPorts
from moldau.local.security.configs import SecurityConfigs
from moldau.local.security.files import SecurityFiles
from moldau.local.security.modes import SecurityMode

HOST: Final = "127.0.0.1"
Setting = str | int | bool


class Blueprint:
    def __init__(
        self,
        brokers: int,
        controllers: int,
        config: Mapping[str, Setting],
        node_config: Mapping[int, Mapping[str, Setting]],
        data_dir: Path | None,
        mode: SecurityMode = SecurityMode.PLAINTEXT,
    ) -> None:
        if brokers < 1 or controllers < 0:
            raise ValueError("a cluster needs at least one broker")
        #: For each node whether it is a broker and whether it is a controller.
        self.roles = roles_of(brokers, controllers)
        self.keeps_data = data_dir is not None
        #: Pairs of node ids: data from the first does not reach the second.
        self.cuts: set[tuple[int, int]] = set()
        #: The ports of each node by listener name, once they are reserved.
        self.ports: dict[int, dict[str, int]] = {number: {} for number in range(1, len(self.roles) + 1)}
        #: The name of the clients' listener, which is that of its security protocol.
        self.client_listener = mode.protocol
        self._mode = mode
        self._security: SecurityConfigs | None = None
        self._config = config
        self._node_config = node_config
        self._data_dir = data_dir
        self._plan: ClusterPlan | None = None
        self._reserved = ReservedPorts(HOST)
        self._remove_data: weakref.finalize[..., Blueprint] | None = None
        weakref.finalize(self, self._reserved.release)

    @property
    def data_dir(self) -> Path:
        if self._data_dir is None:
            raise RuntimeError("the cluster has no data folder before its first start")
        return self._data_dir

    @property
    def security(self) -> SecurityConfigs | None:
        """The configs of a secured cluster, once it has a data folder; None without security."""
        if self._mode is not SecurityMode.PLAINTEXT and self._security is None:
            raise RuntimeError("the cluster has no certificates and users before its first start")
        return self._security

    def folder_of(self, node_id: int) -> Path:
        return self.data_dir if len(self.roles) == 1 else node_folder(self.data_dir, node_id)

    def prepare(self) -> None:
        """Create the data folder and reserve the ports, if that is not done yet."""
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="moldau-"))
            self._remove_data = weakref.finalize(self, shutil.rmtree, self._data_dir, ignore_errors=True)
        self._data_dir.mkdir(parents=True, exist_ok=True)
        if self._mode is not SecurityMode.PLAINTEXT:
            files = SecurityFiles.prepare(self._data_dir, (HOST, "localhost"))
            self._security = SecurityConfigs(self._mode, files)
        if len(self.roles) == 1:
            self._reserve_single()
        elif self._plan is None:
            self._plan = self._kept_plan() or self._new_plan()
            self.ports = {member.id: self._named(member.ports) for member in self._plan.members}

    def clean_up(self) -> None:
        """Release the ports and remove the data unless it is kept; all nodes have exited."""
        self._reserved.release()
        self.cuts.clear()
        self._plan = None
        if self._remove_data is not None:
            self._remove_data()
            self._data_dir = self._remove_data = None

    def start_request(self, node_id: int) -> StartRequest:
        """Return how to start a node now, with the current cuts."""
        folder = self.folder_of(node_id)
        folder.mkdir(parents=True, exist_ok=True)
        properties = self._properties(node_id, folder)
        if self._plan is not None:
            write_properties(folder, properties)
        outgoing, incoming = self.cut_ports(node_id)
        return StartRequest(
            properties=properties,
            log_file=str(folder / "node.log"),
            temporary=None if self.keeps_data else str(self.data_dir),
            format=self._format_options(node_id),
            extra={"outgoing": outgoing, "incoming": incoming},
        )

    def cut_ports(self, node_id: int) -> tuple[list[int], list[int]]:
        """Return the ports that data from the node does not reach, and those whose data does not reach it."""
        outgoing = [port for one, other in self.cuts if one == node_id for port in self._ports_of(other)]
        incoming = [port for one, other in self.cuts if other == node_id for port in self._ports_of(one)]
        return outgoing, incoming

    def _ports_of(self, node_id: int) -> list[int]:
        return list(self.ports[node_id].values())

    def _properties(self, node_id: int, folder: Path) -> dict[str, str]:
        if self._plan is None:
            port, controller_port = (
                self.ports[node_id].get(name, 0) for name in (self.client_listener, CONTROLLER_LISTENER)
            )
            properties = single_node_properties(HOST, port, controller_port, str(folder / "logs"))
        else:
            properties = self._plan.properties(self._plan.members[node_id - 1], folder)
        if self._security is not None:
            properties = self._security.node_properties(properties)
        changed = {**self._config, **self._node_config.get(node_id, {})}
        return {**properties, **{name: _text(value) for name, value in changed.items()}}

    def _format_options(self, node_id: int) -> dict[str, str | bool | Sequence[str]]:
        options: dict[str, str | bool | Sequence[str]] = {}
        if self._plan is not None:
            options.update(self._plan.format_options(self._plan.members[node_id - 1]))
        if self._security is not None:
            options["scram_credentials"] = self._security.scram_credentials()
        return options

    def _named(self, ports: Mapping[str, int]) -> dict[str, int]:
        return {self.client_listener if name == BROKER_LISTENER else name: ports[name] for name in ports}

    def _reserve_single(self) -> None:
        if not self.ports[1]:
            names = (self.client_listener, CONTROLLER_LISTENER)
            self.ports[1] = {name: self._reserved.choose() for name in names}

    def _kept_plan(self) -> ClusterPlan | None:
        plan = ClusterPlan.load(self.data_dir)
        if plan is None:
            return None
        if [(each.port is not None, each.controller_port is not None) for each in plan.members] != self.roles:
            kept = ", ".join(f"{each.id} ({each.roles})" for each in plan.members)
            raise NodeFailed(f"{self.data_dir} contains the data of another cluster, with the nodes {kept}")
        for member in plan.members:
            for port in member.ports.values():
                # Another process may still release the port; otherwise the node's start fails with the
                # reason.
                with contextlib.suppress(OSError):
                    self._reserved.hold(port)
        return plan

    def _new_plan(self) -> ClusterPlan:
        members = tuple(
            Member(
                number,
                self._reserved.choose() if is_broker else None,
                self._reserved.choose() if is_controller else None,
            )
            for number, (is_broker, is_controller) in enumerate(self.roles, 1)
        )
        plan = ClusterPlan.make(HOST, members, random.SystemRandom())
        plan.save(self.data_dir)
        return plan


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
