"""kafka-configs: requests, output and invalid arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.cli.kafka.configs import command
from tests.harness.wire.fake_broker import FakeBroker
from tests.unit.cli.kafka.topic_broker import run, topic_broker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with topic_broker() as fake:
        yield fake


def test_describe_configs(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.main, broker, "--describe", "--topic", "orders") == 0
    line = (
        "  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}"
    )
    assert capsys.readouterr().out.splitlines() == ["Dynamic configs for topic orders are:", line]
    assert run(command.main, broker, "--describe", "--entity-type", "brokers", "--all") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "All configs for broker 1 are:"
    assert shown[3] == "  ssl.key=null sensitive=true synonyms={}"
    assert shown[4] == "Default configs for brokers in the cluster are:"
    assert run(command.main, broker, "--describe", "--topic", "nope") == 0
    assert capsys.readouterr().out == "The topic 'nope' doesn't exist and doesn't have dynamic config.\n"


def test_alter_configs(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("--alter", "--entity-type", "topics", "--entity-name", "orders")
    added = ("--add-config", "a=1,b=[x,y=z],c=", "--delete-config", "d,e")
    assert run(command.main, broker, *argv, *added) == 0
    assert capsys.readouterr().out == "Completed updating config for topic orders.\n"
    sent: Any = broker.requests[-1]
    changes = [(c.name, c.config_operation, c.value) for c in sent.resources[0].configs]
    assert changes == [("a", 0, "1"), ("b", 0, "x,y=z"), ("c", 0, ""), ("d", 1, ""), ("e", 1, "")]
    assert run(command.main, broker, "--alter", "--broker-defaults", "--add-config", "a=1") == 0
    assert capsys.readouterr().out == "Completed updating default config for brokers in the cluster.\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--topic", "t"], "Command must include exactly one action: --describe, --alter"),
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "bogus"], "Invalid entity type bogus"),
        (["--describe", "--entity-type", "topics", "--entity-type", "topics"], "Duplicate entity type(s)"),
        (["--describe", "--entity-type", "topics", "--entity-type", "brokers"], "Only 'users' and 'clients'"),
        (["--describe", "--broker", "x"], "must be a valid integer broker id, but it is: x"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "--entity-default must not be"),
        (
            ["--describe", "--user", "u", "--entity-type", "clients"],
            "--entity-{type,name,default} should not",
        ),
        (["--alter", "--entity-type", "topics", "--add-config", "a=b"], "An entity name must be specified"),
        (["--alter", "--topic", "t"], "At least one of --add-config"),
        (["--alter", "--topic", "t", "--add-config", "a"], 'must be in the format "key=val"'),
        (["--alter", "--topic", "t", "--add-config", "a b=c"], "Invalid character found for config key: a b"),
        (["--alter", "--client", "c", "--add-config", "foo=1"], "Only quota configs can be added"),
        (["--alter", "--user", "u", "--add-config", "foo=1"], "Only quota and SCRAM credential configs"),
        (["--alter", "--client", "c", "--add-config", "producer_byte_rate=x"], "Cannot parse quota"),
        (
            ["--alter", "--user-defaults", "--add-config", "SCRAM-SHA-256=[password=x]"],
            "--user-defaults is not",
        ),
        (
            ["--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=9,password=x]"],
            "minimum 4096",
        ),
        (["--describe", "--topic", "t", "--add-config", "a=b"], 'Option "[describe]" can\'t be used'),
    ],
)
def test_invalid_arguments_are_rejected(
    broker: FakeBroker, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command.main, broker, *argv) == 1
    assert message in capsys.readouterr().err
