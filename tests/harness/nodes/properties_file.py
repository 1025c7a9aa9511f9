"""A node started from a shell with the properties file that Apache Kafka 4.x ships in its config folder."""

from __future__ import annotations

import random
import re
import socket
import subprocess
from pathlib import Path

from tests.harness.apache.node import free_port
from tests.harness.tools import ToolRun, run_tool, tool_command

#: The file in Apache Kafka 4.x's distribution, with placeholders for ports and folder.
PROPERTIES = """\
process.roles=broker,controller
node.id={node_id}
controller.quorum.bootstrap.servers=localhost:{controller}
listeners=PLAINTEXT://:{broker},CONTROLLER://:{controller}
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:{broker},CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs={folder}/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


class Operator:
    """Run the commands of an operator in `folder`. The node id is unique on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node_id = str(random.SystemRandom().randrange(10_000_000, 2**31))
        self.port = free_port()
        self.file = folder / "server.properties"
        self.file.write_text(
            PROPERTIES.format(node_id=self.node_id, broker=self.port, controller=free_port(), folder=folder)
        )
        self.output = folder / "server.out"

    def add(self, *lines: str) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def add_scram_listener(self, *mechanisms: str) -> int:
        """Add a SASL_PLAINTEXT listener beside the others; return its port."""
        port = free_port()
        text = self.file.read_text()
        for name, host in (("listeners", ""), ("advertised.listeners", "localhost")):
            text = re.sub(
                rf"^{re.escape(name)}=.*$", rf"\g<0>,SASL_PLAINTEXT://{host}:{port}", text, flags=re.MULTILINE
            )
        self.file.write_text(text)
        self.add(f"sasl.enabled.mechanisms={','.join(mechanisms)}")
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        for mechanism in mechanisms:
            name = f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config"
            self.add(f"{name}={module} required;")
        return port

    def format(self, *options: str) -> ToolRun:
        identity = run_tool("kafka-storage", "random-uuid").out.strip()
        return run_tool(
            "kafka-storage", "format", "--standalone", "-t", identity, "-c", str(self.file), *options
        )

    def launch(self, *options: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                tool_command("kafka-server-start", self.file.name, *options),
                cwd=self.folder,
                stdout=output,
                stderr=output,
            )

    def printed(self) -> str:
        return self.output.read_text()

    def ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("localhost", self.port)) == 0

    def refused(self, *options: str) -> str:
        """Return the output of a node that refuses to start."""
        process = self.launch(*options)
        try:
            assert process.wait(60) == 1, self.printed()
        finally:
            process.kill()
        assert "Traceback" not in self.printed()
        return self.printed()

    def stop(self) -> ToolRun:
        return run_tool("kafka-server-stop", "--node-id", self.node_id)
