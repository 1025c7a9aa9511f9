"""kafka-log-dirs: the JSON output, and unknown brokers."""

from __future__ import annotations

import json

import pytest

from moldau.cli.kafka import log_dirs
from tests.harness.wire.fake_broker import FakeBroker


def test_replicas_are_printed_as_json_and_unknown_brokers_rejected(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", "a"]
    assert log_dirs.main(argv) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 1"
    replica = {"partition": "a-0", "size": 9, "offsetLag": 1, "isFuture": True}
    directory = {"partitions": [replica], "error": None, "logDir": "/data"}
    assert json.loads(third) == {"brokers": [{"broker": 1, "logDirs": [directory]}], "version": 1}
    assert log_dirs.main([*argv, "--broker-list", "1,7"]) == 1
    assert "do not exist from --broker-list: 7. Current existent brokers: 1" in capsys.readouterr().err
