"""Karapace as a process. `MOLDAU_KARAPACE` is its command, such as `/opt/karapace/bin/python -m karapace`."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.registry.instances import DISCONNECTED, HOST, Instance, ports
from tests.harness.waiting import eventually

COMMAND = os.environ.get("MOLDAU_KARAPACE", "")


class Karapace(Instance):
    """Has the methods of our instances; only the process is another."""

    def __init__(self, bootstrap: str, port: int, topic: str, group: str) -> None:
        self.port = port
        self.url = f"http://{HOST}:{port}"
        self._tls = None
        self._folder = tempfile.TemporaryDirectory(prefix="karapace-")
        self._log = Path(self._folder.name, "log")
        environment = {
            "KARAPACE_BOOTSTRAP_URI": bootstrap,
            "KARAPACE_HOST": HOST,
            "KARAPACE_PORT": str(port),
            "KARAPACE_ADVERTISED_HOSTNAME": HOST,
            "KARAPACE_ADVERTISED_PORT": str(port),
            "KARAPACE_KARAPACE_REGISTRY": "true",
            "KARAPACE_TOPIC_NAME": topic,
            "KARAPACE_GROUP_ID": group,
            "KARAPACE_COMPATIBILITY": "NONE",
            "KARAPACE_LOG_LEVEL": "INFO",
        }
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                shlex.split(COMMAND),
                stdout=log,
                stderr=log,
                text=True,
                env={**os.environ, **environment},
            )

    def wait_ready(self) -> Karapace:
        eventually(self._answers, timeout=60, what="Karapace answers")
        return self

    def wait_leading(self) -> Karapace:
        eventually(lambda: b"true" in self.ask("GET", "/master_available").body, what="Karapace leads")
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log
        try:
            return self.ask("GET", "/subjects").status == 200
        except DISCONNECTED:
            return False


@contextmanager
def karapace(bootstrap: str, topic: str, group: str) -> Iterator[Karapace]:
    with ports(1) as [port]:
        started = Karapace(bootstrap, port, topic, group)
        try:
            yield started.wait_ready()
        finally:
            started.close()
