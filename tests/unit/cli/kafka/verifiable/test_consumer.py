"""kafka-verifiable-consumer: invalid arguments."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.verifiable import consumer


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--topic", "t"], 'Missing required argument "[group-id]"'),
        (
            ["--topic", "t", "--group-id", "g", "--group-protocol", "x"],
            "x is not one of classic, consumer",
        ),
        (
            ["--topic", "t", "--group-id", "g", "--command-config", "a", "--consumer.config", "b"],
            "Options --consumer.config and --command-config are mutually exclusive.",
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consumer.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err
