"""Runs the scenes on Kafka Streams, and returns its results and descriptions."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.harness.apache.node import QUICK_START
from tests.harness.streams.inputs import all_inputs
from tests.harness.streams.results import Written, as_lines, comparable
from tests.harness.streams.scenes import SCENES
from tests.interop import jars

SOURCE = Path(__file__).parents[1] / "java" / "StreamsOracle.java"


@cache
def _answers() -> tuple[tuple[str, ...], ...]:
    try:
        libs = jars.streams_test_libs()
        classes = jars.compiled(SOURCE, libs, f"streams-test-{jars.KAFKA}")
    except jars.Missing as missing:
        pytest.skip(str(missing))
    lines = [
        "\t".join([each.topic, each.key or "~", each.value or "~", str(each.timestamp)])
        for each in all_inputs()
    ]
    command = ["java", *QUICK_START, "-Xmx256m", "-cp", f"{classes}:{libs}/*", SOURCE.stem, *SCENES]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(tuple(line.split("\t")) for line in done.stdout.splitlines())


def description(scene: str) -> list[str]:
    return [answer[2] for answer in _answers() if answer[:2] == ("describe", scene)]


def results() -> dict[str, list[Written]]:
    """Return the comparable results by scene."""
    found: dict[str, list[Written]] = defaultdict(list)
    for answer in _answers():
        if answer[0] == "record":
            _, scene, topic, key, value, timestamp = answer
            found[scene].append(
                Written(topic, "" if key == "~" else key, None if value == "~" else value, timestamp)
            )
    return {scene: comparable(scene, found[scene]) for scene in SCENES}


def record_results(file: Path) -> None:
    """Record the results for tests that run without Java."""
    file.write_text(as_lines(results()))
