"""kafka-streams-groups: invalid arguments are rejected before a broker is asked."""

from __future__ import annotations

import pytest

from moldau.cli.kafka.streams_groups import command

RESET = ["--reset-offsets", "--group", "g"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "Command must include exactly one action"),
        (["--list", "--describe", "--all-groups"], "Command must include exactly one action"),
        (["--list", "--members"], "Option(s) [members] are unavailable"),
        (["--describe"], "Option [describe] takes one of these options: [all-groups], [group]"),
        (["--describe", "--group", "g", "--state", "stable"], "does not take a value for [state]"),
        (["--describe", "--group", "g", "--state", "--members"], "takes at most one of these options"),
        (["--describe", "--group", "g", "--all-groups"], "[group]"),
        (["--delete", "--group", "g", "--input-topic", "t"], "does not support topic-specific"),
        (
            ["--delete", "--group", "g", "--delete-internal-topic", "t"],
            "takes [reset-offsets] when [execute]",
        ),
        (["--delete-offsets", "--group", "g"], "one of these options: [all-input-topics], [input-topic]"),
        (["--delete-offsets", "--group", "g", "--group", "h", "--all-input-topics"], "only one [group]"),
        ([*RESET, "--all-input-topics", "--to-earliest"], "takes the option: [execute] or [dry-run]"),
        ([*RESET, "--execute", "--dry-run"], "only accepts one of [execute] and [dry-run]"),
        ([*RESET, "--dry-run", "--to-earliest", "--to-latest"], "[to-"),
        ([*RESET, "--dry-run", "--delete-all-internal-topics"], "takes [execute] when [reset-offsets]"),
        (["--list", "--execute"], "Only Option [reset-offsets] accepts [execute] or [dry-run]"),
        (["--list", "--delete-all-internal-topics"], "options: [delete], [reset-offsets]"),
    ],
)
def test_invalid_arguments_are_rejected(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--bootstrap-server", "127.0.0.1:1", *argv]) == 1
    assert message in capsys.readouterr().err
