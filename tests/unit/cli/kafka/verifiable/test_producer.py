"""kafka-verifiable-producer: keys and invalid arguments."""

from __future__ import annotations

import itertools

import pytest

from moldau.cli.kafka.verifiable import producer


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], 'Missing required argument "[topic]"'),
        (["--topic", "t", "--acks", "7"], "--acks: invalid choice: '7'"),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert producer.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err


def test_keys_repeat() -> None:
    assert list(itertools.islice(producer.repeating_keys(3), 5)) == ["0", "1", "2", "0", "1"]
    assert list(itertools.islice(producer.repeating_keys(None), 2)) == [None, None]
