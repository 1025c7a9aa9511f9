"""A cluster of Apache Kafka and Moldau nodes, each with a properties file and folders that both can use.

A node can be stopped and restarted with the other software while the other nodes run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness.apache.node import ApacheCluster
from tests.harness.apache.nodes import ApacheNodes, Setting
from tests.harness.apache.shared_folder import APACHE, MOLDAU
from tests.harness.tools import run_tool, tool_command
from tests.harness.waiting import eventually


class MixedNodes:
    def __init__(
        self,
        software: Mapping[int, str],
        libs: Path,
        config: Mapping[str, Setting] | None = None,
        *,
        broker_listener: str = "PLAINTEXT",
        format_options: Sequence[str] = (),
    ) -> None:
        """`software` is the software of each node at first."""
        self._nodes = ApacheNodes(
            len(software),
            libs=libs,
            config=config,
            broker_listener=broker_listener,
            format_options=format_options,
        )
        self._format_options = format_options
        self._first = dict(software)
        self._moldau: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap_servers(self) -> str:
        return self._nodes.bootstrap_servers

    @property
    def bootstrap_controllers(self) -> str:
        return self._nodes.bootstrap_controllers

    def folder(self, node: int) -> Path:
        return self._nodes.folder / str(node)

    def printed(self, node: int) -> str:
        """Return the output of Moldau on this node."""
        return self._output(node).read_text(errors="replace")

    def start(self, node: int, software: str) -> None:
        """Start a node without waiting: the first nodes of a quorum need each other."""
        if software == APACHE:
            self._apache(node).launch()
            return
        file = self._nodes.properties(node)
        self._format(node, file)
        with self._output(node).open("ab") as output:
            command = tool_command("kafka-server-start", str(file))
            self._moldau[node] = subprocess.Popen(command, stdout=output, stderr=output)

    def wait(self, node: int) -> None:
        """Wait until the node is ready."""
        process = self._moldau.get(node)
        if process is None:
            self._apache(node).wait_started()
            return
        before = self._said_before.get(node, 0)
        eventually(
            lambda: "is ready" in self.printed(node)[before:] or process.poll() is not None,
            timeout=60,
            what=f"node {node} is ready",
        )
        assert process.poll() is None, self.printed(node)[-3000:]

    def end(self, node: int, *, kill: bool = False) -> None:
        process = self._moldau.pop(node, None)
        if process is None:
            self._apache(node).kill() if kill else self._apache(node).stop(60.0)
            return
        process.kill() if kill else process.terminate()
        code = process.wait(60)
        assert kill or code == 0, self.printed(node)[-3000:]
        self._said_before[node] = len(self.printed(node))

    def replace(self, node: int, software: str, *, kill: bool = False) -> None:
        """Restart the node on the same folder with the other software."""
        self.end(node, kill=kill)
        self.start(node, software)
        self.wait(node)

    def __enter__(self) -> MixedNodes:
        self._said_before: dict[int, int] = {}
        try:
            for node, software in self._first.items():
                self._nodes.folder.joinpath(str(node)).mkdir(parents=True, exist_ok=True)
                self.start(node, software)
            # Moldau first: it reports why it did not start, while Apache Kafka would wait for it.
            for node in sorted(self._first, key=lambda each: self._first[each] == APACHE):
                self.wait(node)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self._moldau.values():
            process.kill()
            process.wait(10)
        self._nodes.close()

    def _apache(self, node: int) -> ApacheCluster:
        return self._nodes.nodes[node]

    def _output(self, node: int) -> Path:
        path = self.folder(node) / "moldau.log"
        path.touch()
        return path

    def _format(self, node: int, file: Path) -> None:
        if (self.folder(node) / "logs" / "meta.properties").exists():
            return
        words = ["format", "-t", self._nodes.cluster_id, "-c", str(file)]
        words += ["--initial-controllers", self._nodes.voters, *self._format_options]
        done = run_tool("kafka-storage", *words)
        assert done.code == 0, done.err


__all__ = ["APACHE", "MOLDAU", "MixedNodes"]
