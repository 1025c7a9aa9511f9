"""Kafka's share consumer and share group tools, on Moldau and on Apache Kafka."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

from moldau.cli.kafka.share_groups import command as share_groups
from moldau.testing import Cluster
from tests.harness.apache.node import ApacheCluster
from tests.harness.clients.share import ShareClient
from tests.harness.wire.requests import create_and_wait
from tests.interop import jars
from tests.interop.conftest import JavaTool, Node

pytestmark = pytest.mark.interop

SOURCE = Path(__file__).parents[1] / "java" / "ShareConsumers.java"
CHECKS = re.findall(r'checks\.put\("([a-z-]+)",', SOURCE.read_text())


@functools.cache
def answers(bootstrap: str) -> dict[str, str]:
    """Return the result of every check; the program runs once per broker."""
    libs = jars.kafka_libs()
    classes = jars.compiled(SOURCE, libs, jars.KAFKA)
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx400m"]
    command = ["java", *options, "-cp", f"{classes}:{libs}/*", SOURCE.stem, bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    found = {}
    for line in done.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict in ("PASS", "FAIL"):
            check, _, reason = rest.partition(" ")
            found[check] = reason or verdict
    return found


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("broker", ["apache", "moldau"])
def test_share_consumer(broker: str, check: str, request: pytest.FixtureRequest) -> None:
    node: Node | ApacheCluster = request.getfixturevalue(broker)
    assert answers(node.bootstrap_servers).get(check, "the program ended before this check") == "PASS"


SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
COMMANDS = [
    ["--list"],
    ["--list", "--state"],
    ["--list", "--state", "stable"],
    ["--describe", "--group", "GROUP"],
    ["--describe", "--group", "GROUP", "--verbose"],
    ["--describe", "--group", "GROUP", "--members"],
    ["--describe", "--group", "GROUP", "--members", "--verbose"],
    ["--describe", "--group", "GROUP", "--state"],
    ["--describe", "--group", "GROUP", "--state", "--verbose"],
    ["--describe", "--group", "nowhere"],
    ["--delete", "--group", "GROUP", "--group", "nowhere"],
    ["--reset-offsets", "--group", "GROUP", "--topic", "GROUP", "--to-earliest"],
    ["--delete-offsets", "--group", "GROUP", "--topic", "GROUP"],
]
AFTERWARDS = [
    ["--describe", "--group", "GROUP", "--state"],
    ["--reset-offsets", "--group", "GROUP", "--all-topics", "--to-earliest", "--dry-run"],
    ["--delete-offsets", "--group", "GROUP", "--topic", "nowhere"],
]


def test_share_group_tool_output_equals_kafkas(tool: JavaTool, capsys: pytest.CaptureFixture[str]) -> None:
    """Moldau's tool and Kafka's print the same about the same group, with and without members."""
    # The member is idle while the tools run one after the other.
    patient = {"group.share.session.timeout.ms": 600_000, "group.share.max.session.timeout.ms": 600_000}
    with Cluster(config=patient) as node:
        bootstrap = node.bootstrap_servers
        create_and_wait(bootstrap, "queue", 2)
        member = ShareClient(bootstrap, "queue", ["queue"])
        member.join(2)
        for command in COMMANDS:
            _compare(tool, capsys, bootstrap, command)
        member.leave()
        member.close()
        for command in AFTERWARDS:
            _compare(tool, capsys, bootstrap, command)
        reset = ["--reset-offsets", "--group", "queue", "--topic", "queue", "--to-latest", "--execute"]
        assert _ours(capsys, bootstrap, reset)[0].split()[-2:] == ["1", "0"]
        assert _ours(capsys, bootstrap, ["--describe", "--group", "queue"])[0].split()[-2:] == ["0", "0"]
        _compare(tool, capsys, bootstrap, ["--describe", "--group", "GROUP", "--verbose"])
        assert (
            "Successful"
            in _ours(capsys, bootstrap, ["--delete-offsets", "--group", "queue", "--topic", "queue"])[0]
        )
        assert "was successful" in _ours(capsys, bootstrap, ["--delete", "--group", "queue"])[0]


def _compare(tool: JavaTool, capsys: pytest.CaptureFixture[str], bootstrap: str, command: list[str]) -> None:
    command = ["queue" if word == "GROUP" else word for word in command]
    ours, _ = _ours(capsys, bootstrap, command)
    kafkas, _ = tool(SHARE_GROUPS, "--bootstrap-server", bootstrap, *command)
    assert _plain(ours) == _plain(kafkas), command


def _ours(capsys: pytest.CaptureFixture[str], bootstrap: str, command: list[str]) -> tuple[str, int]:
    code = share_groups.main(["--bootstrap-server", bootstrap, *command])
    return capsys.readouterr().out, code


def _plain(output: str) -> list[str]:
    """Remove stack traces and the details of failures."""
    lines = [line.rstrip() for line in output.splitlines()]
    return [
        re.sub(r"due to.*", "due to …", line) for line in lines if not line.startswith(("\tat", "Caused"))
    ]
