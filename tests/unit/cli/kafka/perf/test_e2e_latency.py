"""kafka-e2e-latency: arguments and comparison of records."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.perf import e2e_latency
from moldau.cli.shared.tool import ToolError


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--topic", "t", "--producer-acks", "1"], 'Missing required argument "[num-records]"'),
    ],
)
def test_missing_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert e2e_latency.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("--num-records", "0", "Value for --num-records must be a positive integer."),
        ("--record-size", "-1", "Value for --record-size must be a non-negative integer."),
        ("--record-key-size", "-1", "Value for --record-key-size must be a non-negative integer."),
        ("--record-header-size", "-2", "must be a non-negative integer or -1 for null header value."),
        ("--num-headers", "-1", "Value for --num-headers must be a non-negative integer."),
        ("--producer-acks", "0", "Invalid value for --producer-acks."),
    ],
)
def test_invalid_values_are_rejected(
    name: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"--bootstrap-server": "127.0.0.1:1", "--topic": "t", "--num-records": "1"}
    usual |= {"--producer-acks": "1", "--record-size": "1", name: value}
    assert e2e_latency.main([word for pair in usual.items() for word in pair]) == 1
    assert message in capsys.readouterr().err


def test_positional_arguments_are_converted(capsys: pytest.CaptureFixture[str]) -> None:
    words = e2e_latency.named_arguments(["b:1", "t", "10", "all", "100", "file"])
    assert words[:4] == ["--bootstrap-server", "b:1", "--topic", "t"]
    assert words[-2:] == ["--command-config", "file"]
    assert capsys.readouterr().out.startswith("WARNING: ")
    assert e2e_latency.named_arguments(["--topic", "t"]) == ["--topic", "t"]
    assert e2e_latency.main(["b:1", "t"]) == 1


def test_another_record_than_the_sent_one_is_an_error() -> None:
    e2e_latency.compare((None, b"v", [("h", None)]), (None, b"v", [("h", None)]))
    with pytest.raises(ToolError, match="message value read"):
        e2e_latency.compare((None, b"v", []), (None, b"w", []))
