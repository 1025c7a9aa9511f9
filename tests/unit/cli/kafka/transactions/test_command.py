"""kafka-transactions: invalid arguments."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.transactions import command


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["describe"], "the following arguments are required: --transactional-id"),
        (
            ["describe", "--transactional-id", "x", "--bogus"],
            "bogus is not a recognized option",
        ),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err
