"""The options with which a tool connects."""

from __future__ import annotations

import pytest

from moldau.cli.shared.arguments import (
    ToolParser,
    UsageError,
)
from moldau.cli.shared.connection import add_bootstrap_options, bootstrap_servers


def parser() -> ToolParser:
    made = ToolParser("kafka-test", "A tool.", lambda: "some notes")
    add_bootstrap_options(made)
    made.flag("--list", "List.")
    made.option("--count", "N", "A number.", type=int)
    made.option("--topic", "T", "A topic.")
    return made


def test_bootstrap_options_of_older_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap_servers(parser().parse(["--broker-list", "h:1"])) == "h:1"
    assert capsys.readouterr().err == ""
    assert bootstrap_servers(parser().parse(["--zookeeper", "z:2181"])) == "localhost:9092"
    assert "no longer uses ZooKeeper" in capsys.readouterr().err
    assert bootstrap_servers(parser().parse(["--zookeeper", "z:2181", "--bootstrap-server", "h:1"])) == "h:1"
    with pytest.raises(UsageError, match="bootstrap-server"):
        bootstrap_servers(parser().parse(["--list"]))
