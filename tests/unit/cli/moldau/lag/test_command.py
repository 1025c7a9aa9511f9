"""Command lines of `moldau lag` that are refused before it connects."""

from __future__ import annotations

import pytest

from moldau.cli.moldau.lag.command import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--window", "5", "--interval", "4"], "--window must be 3 to 1440 times --interval (4 s)"),
        (["--once", "--window", "0"], "--interval must be at least 0.05 seconds"),
        (["--once", "--interval", "nan"], "--interval must be at least 0.05 seconds"),
        (["--once", "--window", "inf"], "--window must be 3 to 1440 times --interval (10 s)"),
        (["--once", "--minimum-complete", "2"], "--minimum-complete must be between 0 and 1"),
        (["--once", "--allowed-lag", "-1"], "--allowed-lag must be at least 0"),
        (["--once", "--group", "("], "( is not a name or a regular expression"),
        (["--once", "--serve", "1"], 'Option "[once]" can\'t be used with option "[serve]"'),
        (["--once", "--watch"], 'Option "[once]" can\'t be used with option "[watch]"'),
        (["--serve", "1", "--json"], 'Option "[serve]" can\'t be used with option "[json]"'),
        (["--alert-webhook", "x"], "--alert-webhook must be an http or https URL"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bootstrap-server", "localhost:1", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_the_brokers_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--once"]) == 1
    assert "bootstrap-server" in capsys.readouterr().err
