"""Commands that need an extra say so, and show no traceback."""

from __future__ import annotations

import pytest
import typer

from moldau.cli.moldau.exits import exit_with


def test_what_to_install_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    with pytest.raises(typer.Exit) as ended:
        exit_with(work)
    assert ended.value.exit_code == 1
    assert 'This needs yaml, which is not installed: pip install "moldau[spark]"' in capsys.readouterr().err


def test_a_mistake_of_ours_stays_one() -> None:
    def work() -> int:
        raise ModuleNotFoundError("No module named 'moldau.nothing'", name="moldau.nothing")

    with pytest.raises(ModuleNotFoundError):
        exit_with(work)
