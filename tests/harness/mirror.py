"""A mirror between two clusters as a process, and what tests ask both clusters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.harness.waiting import eventually

#: Replication factors for clusters of one broker, and short intervals.
SMALL = {
    "replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "3",
    "refresh.topics.interval.seconds": "0.3",
    "refresh.groups.interval.seconds": "0.3",
    "emit.checkpoints.interval.seconds": "0.3",
    "sync.group.offsets.interval.seconds": "0.3",
    "sync.topic.configs.interval.seconds": "0.5",
    "offset.flush.interval.ms": "200",
}


def mm2_properties(
    a: str, b: str, settings: Mapping[str, str], *, source: str = "a", target: str = "b"
) -> dict[str, str]:
    """Return the properties of two clusters, with a flow from the first to the second."""
    clusters = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": a,
        f"{target}.bootstrap.servers": b,
        f"{source}->{target}.enabled": "true",
    }
    return clusters | SMALL | dict(settings)


class MirrorProcess:
    """`connect-mirror-maker` in a process of its own; `start` again after `kill`."""

    def __init__(self, folder: Path, properties: Mapping[str, str], *options: str) -> None:
        self.file = folder / "mm2.properties"
        self.file.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
        self._options = options or ("--local",)
        self._log = folder / "mirror.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, ready: str = "Mirroring ") -> MirrorProcess:
        """Start the process and wait until it has printed `ready`."""
        before = len(self.log)
        command = [
            sys.executable,
            "-m",
            "moldau.cli.moldau.mirror.maker",
            str(self.file),
            *self._options,
            "-v",
        ]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        process = self._process
        eventually(
            lambda: ready in self.log[before:] or process.poll() is not None,
            timeout=60,
            what="the mirror is ready",
        )
        assert process.poll() is None, self.log[-3000:]
        return self

    def kill(self) -> None:
        """End the process, and processes it started, with SIGKILL."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """Ask the process to stop, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self.wait(30)

    def wait(self, timeout: float) -> int:
        """Wait until the process has ended, and return its exit code."""
        assert self._process is not None
        code = self._process.wait(timeout)
        self._process = None
        return code

    def __enter__(self) -> MirrorProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()


def produce(bootstrap: str, topic: str, values: list[str], *, partition: int = 0, **config: Any) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, **{n.replace("_", "."): v for n, v in config.items()}}
    )
    for value in values:
        producer.produce(topic, value.encode(), key=value.encode(), partition=partition)
        producer.poll(0)
    assert producer.flush(30) == 0


class Feed:
    """Produces increasing numbers until `stop`, which returns them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
        self._topic = topic
        self._values: list[str] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(0.005):
            for number in range(len(self._values), len(self._values) + 10):
                self._producer.produce(self._topic, str(number).encode(), partition=0)
                self._values.append(str(number))
            self._producer.poll(0)

    def stop(self) -> list[str]:
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(30) == 0
        return self._values


def read_all(bootstrap: str, topic: str, partition: int = 0, *, committed: bool = True) -> list[Any]:
    """Return all messages of a partition up to its current end; none if it does not exist."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            "allow.auto.create.topics": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    where = TopicPartition(topic, partition, 0)
    found: list[Any] = []
    try:
        if partition not in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
            return found
        _, end = consumer.get_watermark_offsets(where, timeout=10)
        consumer.assign([where])
        while (message := consumer.poll(10)) is not None and message.error() is None:
            if (message.offset() or 0) >= end:
                break
            found.append(message)
    finally:
        consumer.close()
    return found


def values_of(bootstrap: str, topic: str, partition: int = 0) -> list[str]:
    return [message.value().decode() for message in read_all(bootstrap, topic, partition)]
