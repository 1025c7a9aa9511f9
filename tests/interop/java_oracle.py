"""Run small Java programs (`java/`) that call Kafka's classes, and return their output."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.harness.apache.node import java_command, kafka_libs


def jars() -> Path:
    """Return the folder with Kafka's jars; skip the test if there is none."""
    libs = kafka_libs()
    if libs is None or not libs.is_dir():
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    return libs


def ask_java(program: str, lines: Iterable[str] = ()) -> list[list[str]]:
    """Run `java/<program>.java` and return its output as fields, without logs and stack traces."""
    command = java_command(jars(), str(Path(__file__).parent / "java" / f"{program}.java"))
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    return [line.split("\t") for line in said if "\t" in line and not line.startswith("\t")]
