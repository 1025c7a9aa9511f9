"""A cluster of real processes: nodes on free ports, with their data in a temporary folder.

Processes, sockets and files are real, so a test sees what production does. Starting is quick because nodes
are forked, all at the same time, from a launcher that has everything imported (see `local/launcher.py`).
Nodes can be killed, paused and restarted, and the network between them can be cut (see `links.py`); clients
always reach every node.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType

from moldau.local.launcher import NodeFailed
from moldau.local.security.modes import SecurityMode
from moldau.testing.blueprint import HOST, Blueprint, Setting
from moldau.testing.cluster_node import ClusterNode

__all__ = ["Cluster", "ClusterNode", "NodeFailed"]


class Cluster:
    """Formats and starts its nodes on entering the context; stops them and removes their data on leaving it.

    The first three brokers are also controllers; with `controllers` there are that many dedicated ones,
    whose ids follow those of the brokers. Ids begin at 1. `config` contains broker settings by Kafka's
    names, `node_config` settings of single nodes by node id. With `data_dir` the data is kept; a folder
    that already contains the data of such a cluster is used as it is.

    `security` is PLAINTEXT, SSL, mTLS, or a mechanism of SASL_SSL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or
    OAUTHBEARER. Certificates and the user `moldau` are created; `client_config`, `librdkafka_config` and
    `python_config` are what clients need. With an authorizer, brokers are the super user `User:broker`.
    """

    def __init__(
        self,
        *,
        brokers: int = 1,
        controllers: int = 0,
        config: Mapping[str, Setting] | None = None,
        node_config: Mapping[int, Mapping[str, Setting]] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        security: str = "PLAINTEXT",
        start_timeout: float = 30.0,
    ) -> None:
        folder = Path(data_dir).absolute() if data_dir is not None else None
        mode = SecurityMode.parse(security)
        self._blueprint = Blueprint(brokers, controllers, config or {}, node_config or {}, folder, mode)
        self.nodes = [ClusterNode(number, self._blueprint, start_timeout) for number in self._blueprint.ports]

    # Nodes and addresses.

    @property
    def brokers(self) -> list[ClusterNode]:
        return [node for node in self.nodes if node.is_broker]

    @property
    def controllers(self) -> list[ClusterNode]:
        return [node for node in self.nodes if node.is_controller]

    @property
    def bootstrap_servers(self) -> str:
        """The value of `bootstrap.servers` for clients."""
        return ",".join(f"{HOST}:{node.port}" for node in self.brokers)

    @property
    def client_config(self) -> dict[str, str]:
        """The properties of Java clients and of Moldau's own, by Kafka's names."""
        security = self._blueprint.security
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **({} if security is None else security.client_properties()),
        }

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """The configuration of confluent-kafka and other clients over librdkafka."""
        security = self._blueprint.security
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **({} if security is None else security.librdkafka_properties()),
        }

    @property
    def python_config(self) -> dict[str, str]:
        """The arguments of kafka-python's clients; OAUTHBEARER also needs a token provider."""
        security = self._blueprint.security
        return {
            "bootstrap_servers": self.bootstrap_servers,
            **({} if security is None else security.python_arguments()),
        }

    @property
    def bootstrap_controllers(self) -> str:
        """The value of `--bootstrap-controller` for tools."""
        return ",".join(f"{HOST}:{node.controller_port}" for node in self.controllers)

    @property
    def data_dir(self) -> Path:
        return self._blueprint.data_dir

    @property
    def running(self) -> bool:
        """Whether every node runs."""
        return all(node.running for node in self.nodes)

    def node(self, node_id: int) -> ClusterNode:
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise ValueError(f"the cluster has no node {node_id}; its nodes are 1 to {len(self.nodes)}")

    # Shortcuts for a cluster with one node.

    @property
    def port(self) -> int:
        return self._only.port

    @property
    def controller_port(self) -> int:
        return self._only.controller_port

    @property
    def log_file(self) -> Path:
        """The node's output, of all its starts."""
        return self._only.log_file

    @property
    def pid(self) -> int:
        return self._only.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process, as in `subprocess`; None if it runs or was never started."""
        return self._only.exit_code

    @property
    def _only(self) -> ClusterNode:
        if len(self.nodes) > 1:
            raise RuntimeError(f"the cluster has {len(self.nodes)} nodes; choose one: cluster.node(1)")
        return self.nodes[0]

    # Starting and stopping.

    def start(self) -> Cluster:
        """Start the nodes that do not run; wait until all serve requests and the brokers know each other."""
        if self.running:
            return self
        self._blueprint.prepare()
        try:
            for node in self.nodes:
                node.start(wait=False)
            for node in self.nodes:
                node.wait_ready()
            if len(self.nodes) > 1:
                self.wait_for_brokers()
        except BaseException:
            for node in self.nodes:
                node.end()
            raise
        return self

    def wait_for_brokers(self, timeout: float = 30.0) -> None:
        """Wait until all running, unpaused brokers report exactly each other as alive."""
        from moldau.client.wire.security import SecuritySettings
        from moldau.local.readiness import wait_for_brokers

        awake = [node for node in self.brokers if node.running and not node.paused]
        connector = SecuritySettings.from_properties(self.client_config).connector()
        wait_for_brokers({node.id: (HOST, node.port) for node in awake}, timeout, connector)

    def stop(self, timeout: float = 30.0) -> None:
        """Shut down all running nodes cleanly: logs are synced, the next start has nothing to recover."""
        chosen = self._running()
        for node in chosen:
            node.begin_stop()
        for node in chosen:
            node.wait_stopped(timeout)

    def kill(self, node_id: int | None = None) -> None:
        """Kill a node (`kill -9`); without an id, all running nodes."""
        for node in self._running() if node_id is None else [self.node(node_id)]:
            node.kill()

    def pause(self, node_id: int) -> None:
        """Pause a node (SIGSTOP); its connections stay open."""
        self.node(node_id).pause()

    def resume(self, node_id: int) -> None:
        """Continue a paused node (SIGCONT)."""
        self.node(node_id).resume()

    def restart(self, node_id: int | None = None, *, wait: bool = True) -> None:
        """Restart a node, or all, on the same folder and ports; shut it down cleanly first if it runs."""
        if node_id is not None:
            self.node(node_id).restart(wait=wait)
            return
        if any(node.running for node in self.nodes):
            self.stop()
        self.start()

    def close(self) -> None:
        """Stop the nodes and remove their data, unless `data_dir` was given."""
        try:
            if self._blueprint.keeps_data and any(node.running for node in self.nodes):
                self.stop()
        finally:
            for node in self.nodes:
                node.end()
            self._blueprint.clean_up()

    def _running(self) -> list[ClusterNode]:
        return [node for node in self.nodes if node.running] or self.nodes[:1]

    # The network between the nodes.

    def partition(self, a: int | Collection[int], b: int | Collection[int], *, one_way: bool = False) -> None:
        """Cut the links between two nodes, or two groups of nodes, until `heal`.

        With `one_way`, only data from `a` to `b` is held back.
        """
        for one, other in ((one, other) for one in self._ids(a) for other in self._ids(b) if one != other):
            self._blueprint.cuts.add((one, other))
            if not one_way:
                self._blueprint.cuts.add((other, one))
        self._apply_cuts()

    def heal(self) -> None:
        """Restore all links; data that was sent meanwhile arrives."""
        self._blueprint.cuts.clear()
        self._apply_cuts()

    def _apply_cuts(self) -> None:
        for node in self.nodes:
            node.apply_cuts()

    def _ids(self, nodes: int | Collection[int]) -> list[int]:
        return [self.node(each).id for each in ([nodes] if isinstance(nodes, int) else nodes)]

    # As a context.

    def __enter__(self) -> Cluster:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
