"""The audit log: what is written, and that strangers cannot fill it."""

from __future__ import annotations

import json
from pathlib import Path

from moldau.base.clock import ManualClock
from moldau.console.web.audit import AuditEntry, AuditLog


def test_lines_say_what_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    log = AuditLog(str(file), ManualClock())
    log.record(
        AuditEntry(
            "POST /acls", "done", "ann", "admin", "::1", "prod", {"principal": "User:x" * 200}, ("b", "a")
        )
    )
    line = json.loads(file.read_text())
    assert line.pop("values")["principal"].startswith("User:xUser:x") and len(file.read_text()) < 1000
    assert line == {
        "time": 1_700_000_000_000,
        "cluster": "prod",
        "user": "ann",
        "role": "admin",
        "address": "::1",
        "action": "POST /acls",
        "fields": ["a", "b"],
        "result": "done",
    }


def test_lines_about_an_address_without_a_login_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    clock = ManualClock()
    log = AuditLog(str(file), clock)
    for _ in range(50):
        log.record_stranger(AuditEntry("GET /x", "refused: not signed in", address="a"))
    log.record_stranger(AuditEntry("GET /x", "refused: not signed in", address="b"))
    assert len(file.read_text().splitlines()) == 11
    clock.advance(61_000)
    log.record_stranger(AuditEntry("GET /x", "refused: not signed in", address="a"))
    assert len(file.read_text().splitlines()) == 12
