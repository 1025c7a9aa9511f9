"""kafka-dump-log: invalid arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka.dump_log.command import main
from tests.unit.cli.kafka.dump_log.segments import dump


def test_unknown_files_and_invalid_arguments(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "meta.properties").write_text("")
    assert dump(folder, name="meta.properties") == 0
    assert "Ignoring unknown file" in capsys.readouterr().err
    assert dump(folder, name="00000000000000000009.log") == 1
    assert "No such file" in capsys.readouterr().err
    assert dump(folder, "--key-decoder-class", "com.example.Mine") == 1
    assert "There is no decoder com.example.Mine" in capsys.readouterr().err
    assert main([]) == 1
    assert main(["--print-data-log"]) == 1
    assert 'Missing required argument "[files]"' in capsys.readouterr().err
