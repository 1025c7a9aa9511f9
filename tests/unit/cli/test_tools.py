"""The table of tools agrees with the entry points, the help texts and `moldau`."""

from __future__ import annotations

import tomllib

import pytest

from moldau.cli.main import main
from moldau.cli.tools import TOOLS, find_tool
from tests.docs.markdown import ROOT


def test_every_tool_is_a_subcommand_of_moldau(capsys: pytest.CaptureFixture[str]) -> None:
    for name in TOOLS:
        assert find_tool(name) is not None
        assert find_tool(name.removeprefix("kafka-")) is find_tool(f"{name}.sh")
    assert find_tool("bogus") is None
    assert main(["topics", "--version"]) == 0
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "doctor" in shown
    assert "console-producer" in shown
    assert main(["bogus"]) == 2


def test_entry_points_agree_with_the_table() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    expected = {"moldau": "moldau.cli.main:main"}
    for name, tool in TOOLS.items():
        expected |= {name: tool.entry_point, f"{name}.sh": tool.entry_point}
    assert scripts == expected


@pytest.mark.parametrize("name", TOOLS)
def test_help_opens_with_the_summary_of_the_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = TOOLS[name].load()(["--help"])
    except SystemExit as exit_request:
        code = int(exit_request.code or 0)
    shown = capsys.readouterr().out
    assert code == 0
    usage, summary, *_ = shown.split("\n\n")
    assert usage.startswith(f"usage: {name}")
    assert summary == TOOLS[name].summary


#: Tools that work on the files and processes of this machine only, or whose argument is a properties file.
LOCAL = {
    "kafka-storage",
    "kafka-server-start",
    "kafka-server-stop",
    "kafka-dump-log",
    "connect-distributed",
    "connect-mirror-maker",
    "connect-standalone",
    "kafka-mirror-maker",
    "schema-registry-start",
    "kafka-rest-start",
}


@pytest.mark.parametrize("name", sorted(set(TOOLS) - LOCAL))
def test_every_tool_that_connects_takes_a_properties_file(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        TOOLS[name].load()(["--help"])
    except SystemExit as exit_request:
        assert not exit_request.code
    assert "--command-config" in capsys.readouterr().out
