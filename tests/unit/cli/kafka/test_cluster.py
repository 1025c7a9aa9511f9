"""kafka-cluster: cluster id, endpoints, invalid arguments."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import cluster
from tests.harness.wire.fake_broker import FakeBroker


def test_cluster_id_and_endpoints(broker: FakeBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.main(["cluster-id", "--bootstrap-server", broker.bootstrap]) == 0
    assert capsys.readouterr().out == "Cluster ID: the-id\n"
    assert cluster.main(["list-endpoints", "-b", broker.bootstrap]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header == "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  "
    assert row.split() == ["1", "127.0.0.1", str(broker.port), "r1", "unfenced", "broker"]
    assert cluster.main(["list-endpoints", "-C", broker.bootstrap]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "controller"


@pytest.mark.parametrize("argv", [["cluster-id"], ["bogus", "-b", "h:1"], ["unregister", "-b", "h:1"]])
def test_invalid_arguments_are_rejected(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.main(argv) == 1
    assert "Try 'kafka-cluster --help'." in capsys.readouterr().err
