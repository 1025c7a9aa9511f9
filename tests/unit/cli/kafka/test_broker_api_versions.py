"""kafka-broker-api-versions: supported versions and the usable one."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import broker_api_versions
from tests.harness.wire.fake_broker import FakeBroker


def test_supported_and_unsupported_apis_are_listed(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert broker_api_versions.main(["--bootstrap-server", broker.bootstrap]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"127.0.0.1:{broker.port} (id: 1 rack: r1 isFenced: false) -> ("
    assert lines[1] == "\tProduce(0): UNSUPPORTED,"
    assert "\tListOffsets(2): 1 to 11 [usable: 11]," in lines
    assert lines[-1] == ")"
