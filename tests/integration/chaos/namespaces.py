"""Nodes in separate network namespaces, whose links can be cut. For root on Linux only.

Every node has an address on a bridge, and so have the clients. A link is cut in one direction by giving the
sender a wrong hardware address of the receiver, so that packets are sent and never received: no error, no
reset, as with a pulled cable. The quorum is a static one, where `moldau.testing.Cluster` has a dynamic one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from moldau.local.plan import write_properties
from moldau.local.readiness import wait_for_brokers
from tests.harness.tools import run_tool
from tests.harness.waiting import eventually

_PORT = 9092
_CONTROLLER_PORT = 9093
_NOBODY = "02:00:00:00:00:99"


def available() -> bool:
    """Return whether this process may create namespaces and links."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"moldau-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return made


def ip(*words: str, namespace: str | None = None) -> None:
    inside = ["-n", namespace] if namespace is not None else []
    done = subprocess.run(["ip", *inside, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join([*inside, *words])}: {done.stderr}"


class NamespaceNode:
    """The part of `moldau.testing.ClusterNode` that faults need."""

    def __init__(self, node_id: int, network: str, folder: Path) -> None:
        self.id = node_id
        self.address = f"{network}.{node_id}"
        self.namespace = f"moldau-{os.getpid()}-{node_id}"
        self.data_dir = folder
        self.log_file = folder / "node.log"
        self.paused = False
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        if not self.running:
            self.paused = False
            self._starts = self._printed()
            command = [
                sys.executable,
                "-m",
                "moldau.cli.kafka.server.command",
                str(self.data_dir / "server.properties"),
            ]
            with self.log_file.open("ab") as log:
                self._process = subprocess.Popen(
                    ["ip", "netns", "exec", self.namespace, *command], stdout=log, stderr=log
                )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        eventually(
            lambda: self._printed() > self._starts or not self.running, timeout=60, what=f"{self.id} ready"
        )
        assert self.running, f"node {self.id} ended; see {self.log_file}"

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def restart(self, *, wait: bool = True) -> None:
        if self.running:
            self.stop()
        self.start(wait=wait)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self.paused = False

    def _printed(self) -> int:
        return self.log_file.read_text(errors="replace").count("is ready") if self.log_file.exists() else 0

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(40)


class NamespaceCluster:
    """The part of `moldau.testing.Cluster` that faults need."""

    def __init__(self, folder: Path, config: Mapping[str, str | int], nodes: int = 3) -> None:
        self._bridge = f"mold{os.getpid() % 100_000}"
        self._network = f"10.213.{os.getpid() % 250}"
        self._config = config
        self.nodes = [
            NamespaceNode(number, self._network, folder / f"node-{number}") for number in range(1, nodes + 1)
        ]
        self._cuts: set[tuple[int, int]] = set()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{node.address}:{_PORT}" for node in self.nodes)

    def node(self, node_id: int) -> NamespaceNode:
        return self.nodes[node_id - 1]

    # Lifecycle.

    def __enter__(self) -> NamespaceCluster:
        try:
            self._lay_links()
            self._format()
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> NamespaceCluster:
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait_ready()
        self.wait_for_brokers()
        return self

    def close(self) -> None:
        for node in self.nodes:
            if node.running:
                node.kill()
            subprocess.run(["ip", "netns", "del", node.namespace], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)

    def kill(self, node_id: int | None = None) -> None:
        for node in self.nodes if node_id is None else [self.node(node_id)]:
            if node.running:
                node.kill()

    def pause(self, node_id: int) -> None:
        self.node(node_id).pause()

    def resume(self, node_id: int) -> None:
        self.node(node_id).resume()

    def restart(self, node_id: int | None = None, *, wait: bool = True) -> None:
        if node_id is not None:
            self.node(node_id).restart(wait=wait)
            return
        self.kill()
        self.start()

    def wait_for_brokers(self, timeout: float = 60.0) -> None:
        wait_for_brokers({node.id: (node.address, _PORT) for node in self.nodes}, timeout)

    # The network.

    def partition(self, a: int | Collection[int], b: int | Collection[int], *, one_way: bool = False) -> None:
        for one in [a] if isinstance(a, int) else a:
            for other in [b] if isinstance(b, int) else b:
                self._cut(one, other)
                if not one_way:
                    self._cut(other, one)

    def heal(self) -> None:
        for one, other in sorted(self._cuts):
            ip("neigh", "del", self.node(other).address, "dev", "eth0", namespace=self.node(one).namespace)
        self._cuts.clear()

    def _cut(self, one: int, other: int) -> None:
        address, namespace = self.node(other).address, self.node(one).namespace
        words = ("neigh", "replace", address, "lladdr", _NOBODY, "nud", "permanent", "dev", "eth0")
        ip(*words, namespace=namespace)
        self._cuts.add((one, other))

    def _lay_links(self) -> None:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("addr", "add", f"{self._network}.254/24", "dev", self._bridge)
        ip("link", "set", self._bridge, "up")
        for node in self.nodes:
            ip("netns", "add", node.namespace)
            outside = f"{self._bridge}n{node.id}"
            ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", node.namespace)
            ip("link", "set", outside, "master", self._bridge, "up")
            ip("addr", "add", f"{node.address}/24", "dev", "eth0", namespace=node.namespace)
            for device in ("eth0", "lo"):
                ip("link", "set", device, "up", namespace=node.namespace)

    def _format(self) -> None:
        voters = ",".join(f"{node.id}@{node.address}:{_CONTROLLER_PORT}" for node in self.nodes)
        cluster_id = run_tool("kafka-storage", "random-uuid").out.strip()
        for node in self.nodes:
            listeners = {"PLAINTEXT": _PORT, "CONTROLLER": _CONTROLLER_PORT}
            properties = {
                "process.roles": "broker,controller",
                "node.id": str(node.id),
                "controller.quorum.voters": voters,
                "controller.listener.names": "CONTROLLER",
                "listeners": ",".join(f"{name}://{node.address}:{port}" for name, port in listeners.items()),
                "log.dirs": str(node.data_dir / "logs"),
                **{name: str(value) for name, value in self._config.items()},
            }
            file = write_properties(node.data_dir, properties)
            done = run_tool("kafka-storage", "format", "-t", cluster_id, "-c", str(file))
            assert done.code == 0, done
