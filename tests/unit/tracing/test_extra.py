"""Without the extra, a client and a broker say what to install; without the switch, nothing is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Consumer, Producer
from moldau.config.definition import ConfigError
from moldau.tracing.extra import needs_opentelemetry
from tests.harness.traces import uninstall

COMMAND = r"pip install 'moldau\[otel\]'"

#: A node in a process that cannot import OpenTelemetry.
NODE = """
import sys
sys.modules["opentelemetry"] = None
from moldau.server.run import StartError, format_if_needed, run_node
properties = dict(
    line.split("=", 1) for line in open(sys.argv[1]).read().splitlines()
)
format_if_needed(properties)
try:
    run_node(properties, on_ready=lambda ports: print("ready"))
except StartError as error:
    print(error)
"""


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.parametrize("client", [Producer, Consumer])
def test_a_client_names_the_extra(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    uninstall(monkeypatch, "moldau.client.tracing")
    with pytest.raises(ConfigError, match=f"enable.tracing needs OpenTelemetry.*{COMMAND}"):
        client({"bootstrap.servers": "localhost:1", "enable.tracing": "true"})


def test_a_node_names_the_extra(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"log.dirs={tmp_path / 'logs'}\ntraces.otlp.endpoint=http://127.0.0.1:4318/v1/traces"
    )
    assert run(NODE, str(properties)).strip() == (
        "traces.otlp.endpoint needs OpenTelemetry, which is not installed: pip install 'moldau[otel]'"
    )


def test_another_missing_package_is_not_mistaken_for_the_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needs_opentelemetry("x"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401


def test_without_the_switch_nothing_of_it_is_imported() -> None:
    program = (
        "import moldau.server.run, sys; from moldau.client import Producer; "
        "Producer({'bootstrap.servers': 'localhost:1'}).close(0); "
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'moldau.tracing'))])"
    )
    assert run(program).strip() == "[]"
