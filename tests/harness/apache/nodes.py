"""Several nodes of Apache Kafka on this machine, for comparisons with a cluster of Moldau.

    with ApacheNodes(3) as cluster:
        cluster.kill(2)
        cluster.restart(2)

Every node is broker and voter (the quorum is a dynamic one); ids count from 1. Two log directories each, so
that replicas can be moved between them. All files are deleted on exit.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness.apache.node import QUICK_START, ApacheCluster, free_port, random_id

Setting = str | int | bool


class ApacheNodes:
    def __init__(
        self,
        count: int = 3,
        *,
        config: Mapping[str, Setting] | None = None,
        configs: Mapping[int, Mapping[str, Setting]] | None = None,
        libs: Path | None = None,
        heap: str = "256m",
        options: Sequence[str] = QUICK_START,
        start_timeout: float = 90.0,
        broker_listener: str = "PLAINTEXT",
        format_options: Sequence[str] = (),
    ) -> None:
        """`config` applies to every node, `configs` to single nodes by id."""
        self.folder = Path(tempfile.mkdtemp(prefix="apache-nodes-"))
        self.cluster_id = random_id()
        self._ports = {node: (free_port(), free_port()) for node in range(1, count + 1)}
        self._directories = {node: random_id() for node in self._ports}
        self.nodes: dict[int, ApacheCluster] = {}
        for node, (port, controller_port) in self._ports.items():
            one = ApacheCluster(
                config={**self._config(node), **(config or {}), **(configs or {}).get(node, {})},
                data_dir=self.folder / str(node),
                start_timeout=start_timeout,
                libs=libs,
                heap=heap,
                options=options,
                cluster_id=self.cluster_id,
                voters=self.voters,
                broker_listener=broker_listener,
                format_options=format_options,
            )
            one.port, one.controller_port = port, controller_port
            self.nodes[node] = one

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.bootstrap_servers for node in self.nodes.values())

    @property
    def bootstrap_controllers(self) -> str:
        return ",".join(f"127.0.0.1:{node.controller_port}" for node in self.nodes.values())

    def properties(self, node: int) -> Path:
        """Return the properties file of a node."""
        return self.nodes[node].write_properties()

    def start(self) -> ApacheNodes:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(ApacheCluster.launch, self.nodes.values()))
        for node in self.nodes.values():
            node.wait_started()
        return self

    def kill(self, node: int) -> None:
        """Kill a node with SIGKILL."""
        self.nodes[node].kill()

    def stop(self, node: int) -> None:
        """Stop a node in a controlled shutdown."""
        self.nodes[node].stop(timeout=60.0)

    def restart(self, node: int) -> None:
        self.nodes[node].restart()

    def close(self) -> None:
        for node in self.nodes.values():
            if node.running:
                node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> ApacheNodes:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def voters(self) -> str:
        """Return the value of `--initial-controllers` for `kafka-storage format`."""
        return ",".join(
            f"{node}@127.0.0.1:{controller_port}:{self._directories[node]}"
            for node, (_, controller_port) in self._ports.items()
        )

    def _config(self, node: int) -> dict[str, str]:
        controllers = ",".join(f"127.0.0.1:{port}" for _, port in self._ports.values())
        copies = str(min(3, len(self._ports)))
        folder = self.folder / str(node)
        return {
            "node.id": str(node),
            "controller.quorum.bootstrap.servers": controllers,
            "log.dirs": f"{folder / 'logs'},{folder / 'more-logs'}",
            "offsets.topic.replication.factor": copies,
            "transaction.state.log.replication.factor": copies,
            "share.coordinator.state.topic.replication.factor": copies,
        }
