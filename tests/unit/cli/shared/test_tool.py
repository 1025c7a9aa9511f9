"""Exit codes and reports of failures."""

from __future__ import annotations

from argparse import Namespace

import pytest

from moldau.base.errors import ErrorCode, KafkaError
from moldau.cli.shared.arguments import (
    ToolParser,
    UsageError,
)
from moldau.cli.shared.connection import add_bootstrap_options
from moldau.cli.shared.tool import ToolError, run_tool


def parser() -> ToolParser:
    made = ToolParser("kafka-test", "A tool.", lambda: "some notes")
    add_bootstrap_options(made)
    made.flag("--list", "List.")
    made.option("--count", "N", "A number.", type=int)
    made.option("--topic", "T", "A topic.")
    return made


def test_help_is_printed_to_stderr_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(parser, lambda options: 0, []) == 1
    assert "--list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no sense"), 1, "no sense\nTry 'kafka-test --help'."),
        (ToolError("cannot"), 1, "cannot"),
        (KafkaError(ErrorCode.INVALID_CONFIG, "bad value"), 1, "bad value"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_reported_without_a_traceback(
    error: BaseException, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(options: Namespace) -> int:
        raise error

    assert run_tool(parser, execute, ["--list"]) == code
    assert capsys.readouterr().err.strip() == message
