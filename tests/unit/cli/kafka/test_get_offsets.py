"""kafka-get-offsets: selection of partitions, timestamps, invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka import get_offsets
from tests.harness.wire.fake_broker import FakeBroker


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["--topic", "a"], ["a:0:100", "a:1:101", "a:2:102"]),
        (["--topic", "a|b", "--partitions", "1"], ["a:1:101", "b:1:101"]),
        (["--topic-partitions", "a:1-,b:0"], ["a:1:101", "a:2:102", "b:0:100"]),
        (["--topic-partitions", "a:-1,b:1-2"], ["a:0:100", "b:1:101"]),
        (["--topic-partitions", ":2", "--exclude-internal-topics"], ["a:2:102", "b:2:102"]),
    ],
)
def test_partitions_are_selected_by_topic_and_rule(
    broker: FakeBroker, argv: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, *argv]) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("latest", -1),
        ("-2", -2),
        ("max-timestamp", -3),
        ("earliest-local", -4),
        ("1700000000000", 1700000000000),
    ],
)
def test_time_names_an_offset_spec_or_a_timestamp(broker: FakeBroker, text: str, timestamp: int) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, "--topic", "a", "--time", text]) == 0
    sent: Any = broker.requests[-1]
    assert sent.topics[0].partitions[0].timestamp == timestamp


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--time", "soon"], "Malformed time argument soon."),
        (["--topic", "nope"], "Could not match any topic-partitions with the specified filters"),
        (["--topic", "a", "--topic-partitions", "a"], "--topic-partitions cannot be used with"),
        (["--partitions", "x"], "--partitions expects a comma separated list"),
        (["--topic-partitions", "a:x"], "Invalid rule specification: a:x"),
        (["--topic", "("], "( is an invalid regex"),
    ],
)
def test_invalid_arguments_are_rejected(
    broker: FakeBroker, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get_offsets.main(["--bootstrap-server", broker.bootstrap, *argv]) == 1
    assert message in capsys.readouterr().err
