"""The prompt: completion, and commands from standard input."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from moldau.cli.kafka.metadata_shell.command import main
from moldau.cli.kafka.metadata_shell.commands import Shell
from moldau.cli.kafka.metadata_shell.prompt import candidates
from tests.unit.cli.kafka.metadata_shell.records import run


def test_tab_completes_commands_and_paths(shell: Shell) -> None:
    assert candidates(shell, "h") == ["help ", "history "]
    assert candidates(shell, "ls /im") == ["/image/"]
    assert candidates(shell, "cat /image/topics/byName/o") == [
        "/image/topics/byName/orders/",
        "/image/topics/byName/other/",
    ]
    assert candidates(shell, "cat /image/prov") == ["/image/provenance"]
    assert candidates(shell, "ls /bro") == ["/brokers/"]
    assert candidates(shell, "ls /brokers/") == ["/brokers/1", "/brokers/2"]
    run(shell, "cd /image")
    assert candidates(shell, "ls to") == ["topics/"]
    assert candidates(shell, "man l") == ["ls"]
    assert candidates(shell, "pwd x") == []
    assert candidates(shell, "nope x") == []


def test_commands_are_read_from_a_pipe(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("cd /brokers\nls 'unfinished\nls\n"))
    assert main(["-d", str(folder)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Loading...",
        "Starting...",
        "No closing quotation",
        "1",
        "2",
    ]
