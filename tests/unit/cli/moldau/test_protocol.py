"""`moldau protocol` prints the code of messages."""

from __future__ import annotations

import pytest

from moldau.cli.main import main


def test_code_of_a_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "HeartbeatRequest", "0"]) == 0
    shown = capsys.readouterr().out
    assert "def encode(" in shown
    assert "HeartbeatResponse" not in shown
    assert main(["protocol", "heartbeat"]) == 0
    assert "HeartbeatResponse version 4" in capsys.readouterr().out
    assert main(["protocol", "Heartbeat", "99"]) == 1
    assert "has the versions 0 to 4" in capsys.readouterr().err
    assert main(["protocol", "Produc"]) == 1
    assert "Did you mean Produce?" in capsys.readouterr().err
