"""MirrorMaker 2 itself, with the interface of `tests.harness.mirror.MirrorProcess`."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.harness.apache.node import QUICK_START, java_command
from tests.harness.waiting import eventually

#: Settings that only MirrorMaker 2 has, and intervals in whole seconds.
_WORKER = {
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
}
#: Settings of its workers count only with the alias of the target cluster.
_OF_CLUSTER = {"offset.flush.interval.ms": "500"}
_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


class MirrorMaker2:
    """MirrorMaker 2 in a process of its own; `start` again after `kill`."""

    def __init__(
        self,
        libs: Path,
        folder: Path,
        properties: Mapping[str, str],
        *,
        heap: str = "256m",
        options: tuple[str, ...] = QUICK_START,
    ) -> None:
        self.file = folder / "mm2-java.properties"
        aliases = properties["clusters"].replace(" ", "").split(",")
        worker = {f"{alias}.{name}": value for alias in aliases for name, value in _OF_CLUSTER.items()}
        settings = {**properties, **_WORKER, **worker}
        self.file.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        self._command = java_command(libs, _MAIN, str(self.file), heap=heap, options=options)
        self._log = folder / "mm2-java.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> MirrorMaker2:
        before = len(self.log)
        with self._log.open("ab") as output:
            process = subprocess.Popen(self._command, stdout=output, stderr=output, start_new_session=True)
        self._process = process
        eventually(
            lambda: "Kafka MirrorMaker started" in self.log[before:] or process.poll() is not None,
            timeout=120,
            what="MirrorMaker 2 has started",
        )
        assert process.poll() is None, self.log[-3000:]
        return self

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(timeout=90)
        self._process = None
        return code

    def __enter__(self) -> MirrorMaker2:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
