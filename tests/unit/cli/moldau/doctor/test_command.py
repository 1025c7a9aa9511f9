"""The command `moldau doctor`."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.main import main
from tests.harness.wire.fake_broker import FakeBroker


def test_exit_code_tells_whether_there_are_problems(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        assert main(["doctor", "--bootstrap-server", broker.bootstrap]) == 0
    assert "Clients on this machine can use this cluster." in capsys.readouterr().out
    assert main(["doctor", "--bootstrap-server", "127.0.0.1:1", "--timeout-ms", "500"]) == 1
    shown = capsys.readouterr().out
    assert "1 problem found." in shown
    assert "-> Is the broker running" in shown


def test_properties_file_of_the_client_is_read(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    with FakeBroker() as broker:
        file.write_text(f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SSL\n")
        assert main(["doctor", "--command-config", str(file)]) == 1
    assert "the client is configured for SSL" in capsys.readouterr().out
    assert main(["doctor", "--command-config", str(tmp_path / "missing")]) == 1
    assert "Unable to read file" in capsys.readouterr().err
