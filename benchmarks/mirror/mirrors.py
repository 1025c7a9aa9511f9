"""The mirrors under test, each as a process with its CPU time and memory.

All read the same properties; `-tuned` has settings of the producer and consumer for throughput, which our
copy of whole batches does not need.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.apache.node import java_command

#: The JVM options of `connect-mirror-maker.sh`.
_JVM = ("-server", "-Xms256m", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_HEAP = "2g"
_TUNED = {
    "producer.batch.size": "262144",
    "producer.linger.ms": "5",
    "producer.buffer.memory": "67108864",
    "consumer.max.partition.fetch.bytes": "4194304",
    "consumer.fetch.max.bytes": "67108864",
    "consumer.max.poll.records": "10000",
}
_SMALL = {
    f"{name}.replication.factor": "1"
    for name in ("heartbeats.topic", "checkpoints.topic", "offset-syncs.topic", "offset.storage")
} | {f"{name}.storage.replication.factor": "1" for name in ("config", "status")}


@dataclass(frozen=True, slots=True)
class Mirror:
    """`alias` names the source cluster, so that every mirror has topics and offsets of its own."""

    name: str
    alias: str
    command: Sequence[str]
    options: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def start(self, folder: Path, source: str, target: str, topics: str) -> subprocess.Popen[bytes]:
        file = folder / f"{self.alias}.properties"
        properties = {
            "clusters": f"{self.alias}, target",
            f"{self.alias}.bootstrap.servers": source,
            "target.bootstrap.servers": target,
            f"{self.alias}->target.enabled": "true",
            f"{self.alias}->target.topics": topics,
            "replication.factor": "1",
            "tasks.max": "2",
            "refresh.topics.interval.seconds": "1",
            "emit.checkpoints.interval.seconds": "5",
            **_SMALL,
            **self.settings,
        }
        file.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
        command = [*self.command, str(file), *self.options]
        with (folder / f"{self.alias}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def ours() -> list[Mirror]:
    command = (sys.executable, "-m", "moldau.cli.moldau.mirror.maker")
    return [
        Mirror("Moldau, --local", "local", command, ("--local",)),
        Mirror("Moldau, Spark", "spark", command),
    ]


def mirror_makers(libs: Path) -> list[Mirror]:
    command = java_command(libs, "org.apache.kafka.connect.mirror.MirrorMaker", heap=_HEAP, options=_JVM)
    return [
        Mirror("MirrorMaker 2", "mm2", command),
        Mirror("MirrorMaker 2, tuned", "tuned", command, settings=_TUNED),
    ]
