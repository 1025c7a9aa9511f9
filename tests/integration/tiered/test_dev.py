"""`moldau dev --tiered`: topics can be tiered, into a folder beside the data."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.harness.tiered.worlds import consume, local, produce, stored, tiered_topic
from tests.harness.waiting import eventually


def test_closed_segments_move_to_the_folder_beside_the_data(tmp_path: Path, topic: str) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-m", "moldau", "dev", "--tiered", "--port", "0", "--data", str(data)]
    settings = ["log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100"]
    words = [word for setting in settings for word in ("--set", setting)]
    process = subprocess.Popen(
        [*command, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        printed = ""
        while "Press Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        found = re.search(r"(?:localhost|127\.0\.0\.1):(\d+)", printed)
        assert found is not None, printed
        bootstrap = f"127.0.0.1:{found[1]}"
        tiered_topic(bootstrap, topic)
        produce(bootstrap, topic, range(35))
        remote = tmp_path / "data-remote"
        eventually(lambda: stored(remote, topic) and len(local(data, topic)) == 1, timeout=90)
        assert consume(bootstrap, topic, 0, 35) == list(range(35))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
