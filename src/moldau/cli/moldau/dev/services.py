"""The HTTP services of `moldau dev --all`: each in its own process, which exits with this one.

The services do not share the event loop of the broker, so that they cannot delay it. Each stops when its
standard input is closed, also if this process is killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from moldau.cli.moldau.dev.security import client_file
from moldau.cli.shared.process import STOP_WITH_INPUT
from moldau.local.security.configs import SecurityConfigs

_STOP_TIMEOUT_S: Final = 5.0
_REGISTRY: Final = "moldau.cli.moldau.services.registry"
_REST: Final = "moldau.cli.moldau.services.rest"
_CONSOLE: Final = "moldau.cli.moldau.services.console"
_CONNECT: Final = "moldau.cli.kafka.connect.command"
#: The default folder for the state of `moldau pipeline run`.
PIPELINES_STATE: Final = Path("state/pipelines")


class DevServices:
    """The services to run; the port of one that is not wanted is None."""

    def __init__(
        self,
        registry_port: int | None,
        rest_port: int | None,
        connect_port: int | None,
        console_port: int | None,
        *,
        lag_window_s: float | None = None,
        verbose: bool,
    ) -> None:
        self._registry_port = registry_port
        self._rest_port = rest_port
        self._connect_port = connect_port
        self._console_port = console_port
        self._lag_window_s = lag_window_s
        self._verbose = verbose
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def broker_settings(self) -> tuple[str, ...]:
        """The settings with which brokers use the services: they validate schemas with the registry.

        The registry of port 0 chooses its port after the brokers have started, so they cannot know it.
        """
        if not self._registry_port:
            return ()
        return (f"confluent.schema.registry.url={_registry_url(self._registry_port)}",)

    def start(self, servers: str, security: SecurityConfigs | None, announce: Callable[[str], None]) -> None:
        """Start the services once the brokers are ready; each prints its URL when it is ready itself."""
        options = ["--bootstrap-server", servers]
        if security is not None:
            options += ["--command-config", str(client_file(security))]
        registry: list[str] = []
        if self._registry_port is not None:
            registry = ["--registry", _registry_url(self._registry_port)]
            announce(f"  schema registry    {_registry_url(self._registry_port)}")
            self._run(_REGISTRY, [*options, "--port", str(self._registry_port)])
        if self._rest_port is not None:
            announce(f"  REST proxy         http://localhost:{self._rest_port}")
            self._run(_REST, [*options, *registry, "--port", str(self._rest_port)])
        connect: list[str] = []
        if self._connect_port is not None:
            announce(f"  Connect            http://localhost:{self._connect_port}")
            # Threads start at once and need no Java.
            threads = ["--set", "tasks.host=threads"]
            self._run(_CONNECT, [*options, *threads, "--port", str(self._connect_port)])
            connect = ["--connect", f"http://localhost:{self._connect_port}"]
        # Without security no login is required: the console listens on loopback only.
        login = "none" if security is None else "scram"
        self._start_console([*options, *registry, *connect, "--set", f"login={login}"], announce)

    def _start_console(self, options: list[str], announce: Callable[[str], None]) -> None:
        if self._console_port is None:
            announce(
                "  web console        none; start with --console to see topics, records and lag in a browser"
            )
            return
        if self._console_port:
            announce(f"  web console        http://localhost:{self._console_port}")
        window = [] if self._lag_window_s is None else ["--lag-window", str(self._lag_window_s)]
        options = [*options, "--pipelines", str(PIPELINES_STATE.absolute()), *window]
        if spark_is_installed():
            options.append("--sql")
        self._run(_CONSOLE, [*options, "--port", str(self._console_port)])

    def report_exits(self, announce: Callable[[str], None]) -> None:
        """Report services that have exited."""
        for process in [each for each in self._processes if each.poll() is not None]:
            self._processes.remove(process)
            announce(f"A service has exited with code {process.returncode}. The brokers keep running.")

    def stop(self) -> None:
        """Stop the services, before the brokers if possible: they leave their groups."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def __enter__(self) -> DevServices:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self, module: str, options: list[str]) -> None:
        verbose = ["--verbose"] if self._verbose else []
        command = [sys.executable, "-m", module, *options, *verbose, STOP_WITH_INPUT]
        self._processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))


def spark_is_installed() -> bool:
    """Return whether SQL can run here; PySpark is not imported, and Java not started."""
    from moldau.pipelines.spark.java import JavaMissing, find_java

    if find_spec("pyspark") is None:
        return False
    try:
        find_java(os.environ)
    except JavaMissing:
        return False
    return True


def _registry_url(port: int) -> str:
    return f"http://localhost:{port}"
