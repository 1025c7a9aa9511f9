"""The commands and the program of docs/LAG.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moldau.cli.moldau.lag.command import new_parser
from moldau.lag.serving.metrics import FAMILIES
from moldau.testing import Cluster
from tests.docs.markdown import blocks, section
from tests.docs.shell import ADDRESS, Shell

PAGE = "docs/LAG.md"


def test_the_tutorial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tutorial = blocks(section(PAGE, "Try it"))
    with Cluster() as node:
        shell = Shell(tmp_path, node.port)
        outputs = [
            shell.run(line)
            for block in tutorial
            if block.language == "sh"
            for line in block.text.splitlines()
        ]
        (program,) = blocks(section(PAGE, "Reference"), "python")
        exec(compile(program.text.replace(ADDRESS, shell.address), PAGE, "exec"), {})
    one_look, window = [block.text for block in tutorial if block.language == "text"]
    assert _without_ages(outputs[-2]) == _without_ages(one_look)
    assert _without_ages(outputs[-1]) == _without_ages(window)
    assert capsys.readouterr().out.startswith("billing OK 200 ")


def test_every_option_is_listed() -> None:
    text = section(PAGE, "Reference")
    options = {
        name
        for action in new_parser()._actions
        for name in action.option_strings
        if name.startswith("--") and action.help != "==SUPPRESS=="
    }
    missing = {each for each in options - {"--help", "--version"} if f"`{each}" not in text}
    assert missing == set()


def test_every_metric_is_listed() -> None:
    text = section(PAGE, "Reference")
    assert [family.name for family in FAMILIES if f"`{family.name}`" not in text] == []


def _without_ages(output: str) -> list[list[str]]:
    """Return the words of the lines; ages and lines of the table depend on the run."""
    text = re.sub(r"\d+ s\.", "N s.", output)
    lines = [line.split() for line in text.splitlines() if line.strip() and "─" not in line]
    return [[word for word in line if not _is_age(word)] for line in lines]


def _is_age(word: str) -> bool:
    return "." in word and word.removeprefix(">").replace(".", "").isdigit()
