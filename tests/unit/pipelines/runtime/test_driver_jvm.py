"""A kept command that is of no use is not used."""

from __future__ import annotations

from pathlib import Path

from moldau.pipelines.driver_jvm import Launch, read_launch, start_jvm


def test_a_command_that_starts_no_jvm_comes_to_nothing() -> None:
    assert start_jvm(Launch(["/bin/false"], {}), {"spark.master": "local"}) is None
    assert start_jvm(Launch(["/no/such/java"], {}), {}) is None


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    note = tmp_path / "launch.json"
    assert read_launch(note) is None
    for text in ("", "[]", '{"command": 1}', '{"else": []}'):
        note.write_text(text)
        assert read_launch(note) is None
    note.write_text('{"command": ["java"], "variables": {"SPARK_HOME": "here"}}')
    assert read_launch(note) == Launch(["java"], {"SPARK_HOME": "here"})
