"""Commands that need an extra name it and print no traceback."""

from __future__ import annotations

import pytest
import typer

from moldau.cli.moldau.exits import exit_with


def test_missing_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    with pytest.raises(typer.Exit) as ended:
        exit_with(work)
    assert ended.value.exit_code == 1
    assert 'This needs yaml, which is not installed: pip install "moldau[spark]"' in capsys.readouterr().err


def test_missing_module_of_moldau_is_not_reported_as_a_missing_extra() -> None:
    def work() -> int:
        raise ModuleNotFoundError("No module named 'moldau.nothing'", name="moldau.nothing")

    with pytest.raises(ModuleNotFoundError):
        exit_with(work)
