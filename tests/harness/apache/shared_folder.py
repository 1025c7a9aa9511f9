"""A properties file and its folders, on which Apache Kafka and Moldau are started alternately."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.harness.apache.node import ApacheCluster, free_port, java_command
from tests.harness.tools import run_tool, tool_command
from tests.harness.waiting import eventually

CLUSTER_ID = "aGFuZC1vdmVyLXRlc3RzMQ"
APACHE, MOLDAU = "apache", "moldau"


class SharedFolder:
    """The folders and the broker that runs on them; at most one runs at a time."""

    def __init__(
        self, folder: Path, libs: Path, config: Mapping[str, str | int | bool] | None = None
    ) -> None:
        self.folder = folder
        self.dirs = [folder / "a", folder / "b"]
        settings = {"log.dirs": ",".join(map(str, self.dirs)), **(config or {})}
        self._apache = ApacheCluster(data_dir=folder, libs=libs, config=settings)
        self._apache.port, self._apache.controller_port = free_port(), free_port()
        self._moldau: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.file = self._apache.write_properties()

    @property
    def bootstrap_servers(self) -> str:
        return self._apache.bootstrap_servers

    @property
    def metadata(self) -> Path:
        """Return the folder of the metadata log."""
        return self.dirs[0] / "__cluster_metadata-0"

    def reconfigure(self, config: Mapping[str, str | int | bool | None]) -> None:
        """Set configs for the next start; None removes one."""
        self._apache.override(config)
        self.file = self._apache.write_properties()

    def format(self, by: str, *options: str) -> None:
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(self.file), "--standalone", *options]
        if by == MOLDAU:
            done = run_tool("kafka-storage", *arguments)
            assert done.code == 0, done.err
        else:
            command = java_command(self._apache.libs, "kafka.tools.StorageTool", *arguments)
            subprocess.run(command, check=True, capture_output=True, timeout=60)

    def start(self, broker: str) -> str:
        """Start a broker and return its address once it serves requests."""
        self._output = self._apache.log_file if broker == APACHE else self.folder / "moldau.log"
        self._said_before = self._output.stat().st_size if self._output.exists() else 0
        if broker == APACHE:
            self._apache.start()
        else:
            self._start_moldau()
        return self.bootstrap_servers

    def printed(self) -> str:
        """Return the output of the broker since its last start."""
        return self._output.read_bytes()[self._said_before :].decode(errors="replace")

    def _start_moldau(self) -> None:
        with self._output.open("ab") as output:
            command = tool_command("kafka-server-start", str(self.file))
            self._moldau = process = subprocess.Popen(command, stdout=output, stderr=output)
        eventually(
            lambda: "is ready" in self.printed() or process.poll() is not None,
            what="Moldau is ready",
        )
        assert process.poll() is None, self.printed()

    def stop(self) -> None:
        """Stop the broker with SIGTERM."""
        if self._moldau is None:
            self._apache.stop()
            return
        self._moldau.terminate()
        assert self._moldau.wait(60) == 0, self.printed()[-3000:]
        self._moldau = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        if self._moldau is None:
            self._apache.kill()
            return
        self._moldau.kill()
        self._moldau.wait(10)
        self._moldau = None

    def __enter__(self) -> SharedFolder:
        return self

    def __exit__(self, *_: object) -> None:
        if self._moldau is not None or self._apache.running:
            self.kill()
