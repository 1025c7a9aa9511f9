"""`moldau dev` with HTTP services, as a reader of a document starts it, on ports that are free."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.local.ports import ReservedPorts
from tests.docs.shell import Shell

REGISTRY, REST, CONSOLE = "Schema registry", "REST proxy", "Web console"


class DevServices:
    def __init__(self, folder: Path) -> None:
        reserved = ReservedPorts("127.0.0.1")
        self.broker, self.registry, self.rest, self.connect, self.console = (
            reserved.choose() for _ in range(5)
        )
        reserved.release()
        self.shell = Shell(folder, self.broker)

    def with_ports(self, text: str) -> str:
        """Replace the ports of the services that a document names."""
        text = text.replace("localhost:8081", f"localhost:{self.registry}")
        text = text.replace("localhost:8083", f"localhost:{self.connect}")
        text = text.replace("localhost:8080", f"localhost:{self.console}")
        return text.replace("localhost:8082", f"localhost:{self.rest}")

    @contextmanager
    def started(self, command: str, *titles: str) -> Iterator[None]:
        """Run the command until the services with these titles are ready."""
        ports = f"--port {self.broker} --registry-port {self.registry} --rest-port {self.rest}"
        ports += f" --connect-port {self.connect}"
        ports += f" --console-port {self.console}"
        process = self.shell.open(f"{command} {ports}")
        assert process.stdout is not None
        try:
            printed = ""
            while not all(f"{title} is ready" in printed for title in titles):
                line = process.stdout.readline()
                assert line, printed
                printed += line
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
            process.stdout.close()
