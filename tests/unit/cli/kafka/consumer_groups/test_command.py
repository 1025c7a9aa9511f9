"""kafka-consumer-groups: invalid arguments, options, regular expressions."""

from __future__ import annotations

import argparse

import pytest

from moldau.cli.kafka.consumer_groups import command
from tests.unit.cli.kafka.consumer_groups.groups_tool import GroupsTool


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--list", "--describe", "--group", "g"], '"[group]" can\'t be used with option "[list]"'),
        ([], "Command must include exactly one action: --list, --describe, --delete, --reset-offsets"),
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--delete"], "Option [delete] takes one of these options"),
        (["--reset-offsets", "--dry-run"], "Option [reset-offsets] takes one of these options"),
        (
            ["--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (
            ["--describe", "--group", "g", "--state", "x"],
            "Option [describe] does not take a value for [state]",
        ),
        (["--delete", "--group", "g", "--topic", "t"], "does not support topic-specific offset deletion"),
        (["--delete-offsets", "--group", "g"], "Option [delete-offsets] takes the following options"),
        (
            ["--reset-offsets", "--group", "g", "--execute", "--dry-run"],
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--dry-run", "--to-latest", "--to-offset", "1"],
            '"[to-offset]" can\'t be used with option "[to-latest]"',
        ),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options"),
        (["--describe", "--group", "g", "--type"], "Option(s) [type] are unavailable given other options"),
        (["--describe", "--group", "g", "--all-groups"], '"[group]" can\'t be used with'),
        (["--reset-offsets", "--group", "g", "--to-offset", "many"], "Cannot parse argument 'many'"),
    ],
)
def test_invalid_arguments_are_rejected(groups: GroupsTool, argv: list[str], message: str) -> None:
    code, _, err = groups.run(*argv)
    assert (code, message in err) == (1, True), err


def test_bootstrap_server_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 1
    assert 'Missing required argument "[bootstrap-server]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("regex", "verdict"),
    [
        ("orders-.*", "valid"),
        ("a(", "invalid: missing closing )"),
        ("[a", "invalid: missing closing ]"),
        ("(?=x)", "invalid: invalid or unsupported Perl syntax"),
    ],
)
def test_regex_is_validated_by_re2(regex: str, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--validate-regex", regex]) == 0
    assert capsys.readouterr().out == f"The regular expression `{regex}` is {verdict}.\n"


def test_state_and_type_have_optional_values() -> None:
    options = command._parser().parse(["--list", "--state", "--type", "classic"])
    assert isinstance(options, argparse.Namespace)
    assert (options.state, options.type, options.timeout) == ("", "classic", 30_000)
