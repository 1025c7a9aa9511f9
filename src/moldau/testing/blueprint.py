"""What a `Cluster` is made of: roles, settings, folders and ports of its nodes, and which links are cut.

The first three brokers are controllers as well, or there are separate controllers, whose ids follow those of
the brokers. One node takes any free ports. Several must know each other's before they start: they are chosen
with the first start, together with everything else that the nodes' folders must be formatted with, and kept
beside the data (`local/plan.py`).
"""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from moldau.local.launcher import NodeFailed, StartOrder
from moldau.local.plan import (
    BROKER_LISTENER,
    ClusterPlan,
    Member,
    node_folder,
    roles_of,
    write_properties,
)
from moldau.local.ports import ReservedPorts
from moldau.local.single_node import CONTROLLER_LISTENER, single_node_properties

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
    ) -> None:
        if brokers < 1 or controllers < 0:
            raise ValueError("a cluster has at least one broker")
        #: For each node whether it is a broker and whether it is a controller.
        self.roles = roles_of(brokers, controllers)
        self.keeps_data = data_dir is not None
        #: Pairs of ids: what the first says does not reach the second.
        self.cuts: set[tuple[int, int]] = set()
        #: Of each node, by the names of its listeners; those of a single node are known once it has started.
        self.ports: dict[int, dict[str, int]] = {number: {} for number in range(1, len(self.roles) + 1)}
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
            raise RuntimeError("the cluster has no data folder before it is started")
        return self._data_dir

    def folder_of(self, node_id: int) -> Path:
        return self.data_dir if len(self.roles) == 1 else node_folder(self.data_dir, node_id)

    def prepare(self) -> None:
        """Before nodes are started: there is a folder, and several nodes have ports."""
        if self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="moldau-"))
            self._remove_data = weakref.finalize(self, shutil.rmtree, self._data_dir, ignore_errors=True)
        self._data_dir.mkdir(parents=True, exist_ok=True)
        if len(self.roles) > 1 and self._plan is None:
            self._plan = self._kept_plan() or self._new_plan()
            self.ports = {member.id: member.ports for member in self._plan.members}

    def clean_up(self) -> None:
        """When all nodes are gone: nothing is left, but for data that is to stay."""
        self._reserved.release()
        self.cuts.clear()
        self._plan = None
        if self._remove_data is not None:
            self._remove_data()
            self._data_dir = self._remove_data = None

    def order(self, node_id: int) -> StartOrder:
        """How a node is to be started now."""
        folder = self.folder_of(node_id)
        folder.mkdir(parents=True, exist_ok=True)
        properties = self._properties(node_id, folder)
        if self._plan is not None:
            write_properties(folder, properties)
        outgoing, incoming = self.cut_off(node_id)
        return StartOrder(
            properties=properties,
            log_file=str(folder / "node.log"),
            temporary=None if self.keeps_data else str(self.data_dir),
            format={} if self._plan is None else self._plan.format_options(self._plan.members[node_id - 1]),
            outgoing=outgoing,
            incoming=incoming,
        )

    def cut_off(self, node_id: int) -> tuple[list[int], list[int]]:
        """Ports that do not hear the node, and ports it does not hear."""
        outgoing = [port for one, other in self.cuts if one == node_id for port in self._ports_of(other)]
        incoming = [port for one, other in self.cuts if other == node_id for port in self._ports_of(one)]
        return outgoing, incoming

    def _ports_of(self, node_id: int) -> list[int]:
        return list(self.ports[node_id].values())

    def _properties(self, node_id: int, folder: Path) -> dict[str, str]:
        if self._plan is None:
            port, controller_port = (
                self.ports[node_id].get(name, 0) for name in (BROKER_LISTENER, CONTROLLER_LISTENER)
            )
            properties = single_node_properties(HOST, port, controller_port, str(folder / "logs"))
        else:
            properties = self._plan.properties(self._plan.members[node_id - 1], folder)
        changed = {**self._config, **self._node_config.get(node_id, {})}
        return {**properties, **{name: _text(value) for name, value in changed.items()}}

    def _kept_plan(self) -> ClusterPlan | None:
        plan = ClusterPlan.load(self.data_dir)
        if plan is None:
            return None
        if [(each.port is not None, each.controller_port is not None) for each in plan.members] != self.roles:
            kept = ", ".join(f"{each.id} ({each.roles})" for each in plan.members)
            raise NodeFailed(f"{self.data_dir} holds the data of another cluster, with the nodes {kept}")
        for member in plan.members:
            for port in member.ports.values():
                # Whoever has it now may let go of it again: the node will say it if not.
                with contextlib.suppress(OSError):
                    self._reserved.this(port)
        self._reserved.settle()
        return plan

    def _new_plan(self) -> ClusterPlan:
        members = tuple(
            Member(
                number,
                self._reserved.any() if is_broker else None,
                self._reserved.any() if is_controller else None,
            )
            for number, (is_broker, is_controller) in enumerate(self.roles, 1)
        )
        self._reserved.settle()
        plan = ClusterPlan.make(HOST, members, random.SystemRandom())
        plan.save(self.data_dir)
        return plan


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
