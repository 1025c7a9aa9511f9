"""Ask small Java programs beside this file what Kafka's own classes say."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.harness.apache.node import java_command, kafka_libs


def jars() -> Path:
    """The folder with Kafka's jars; the test is skipped when there is none."""
    libs = kafka_libs()
    if libs is None or not libs.is_dir():
        pytest.skip("set KAFKA_LIBS to the folder with Kafka's jars")
    return libs


def ask_java(program: str, lines: Iterable[str] = ()) -> list[list[str]]:
    """What `java/<program>.java` answers, as fields; logging and stack traces are passed over."""
    command = java_command(jars(), str(Path(__file__).parent / "java" / f"{program}.java"))
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    return [line.split("\t") for line in said if "\t" in line and not line.startswith("\t")]
