"""Events as lines of JSON."""

from __future__ import annotations

import json

import pytest

from moldau.cli.shared.json_io import print_event


def test_events_are_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_event("sent", key=None, text="žluť")
    line = capsys.readouterr().out
    assert line.endswith(',"name":"sent","key":null,"text":"žluť"}\n')
    assert json.loads(line)["timestamp"] > 1_000_000_000_000
