"""`moldau sql` as a process: scripts, exit codes, and the interactive shell."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moldau.testing import Cluster

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-B0]|\r")


def command(broker: Cluster, folder: Path, *words: str) -> list[str]:
    server = ["--bootstrap-server", broker.bootstrap_servers, "--state-dir", str(folder)]
    return [sys.executable, "-m", "moldau", "sql", *server, *words]


class Terminal:
    """A process with a pseudo terminal."""

    def __init__(self, words: list[str]) -> None:
        self._side, other = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            words,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
            # Ctrl-C reaches the process only if this is its controlling terminal.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(other)
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._side, text.encode())

    def wait_for(self, words: str, timeout: float = 90) -> None:
        deadline = time.monotonic() + timeout
        while words not in self._seen:
            assert time.monotonic() < deadline, f"{words!r} never came: {self._seen[-2000:]}"
            if select.select([self._side], [], [], 0.5)[0]:
                text = self._read()
                # The prompt queries the position of the cursor; answer as a terminal does.
                if "\x1b[6n" in text:
                    self.type("\x1b[1;1R")
                self._seen += _CONTROL.sub("", text)
        self._seen = self._seen.partition(words)[2]

    def _read(self) -> str:
        try:
            return os.read(self._side, 65536).decode(errors="replace")
        except OSError:
            raise AssertionError(f"the process has ended: {self._seen[-2000:]}") from None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._side)


def test_script_and_interactive_shell(broker: Cluster, tmp_path: Path) -> None:
    name = f"s_{uuid.uuid4().hex[:8]}"
    script = tmp_path / "script.sql"
    script.write_text(
        f"CREATE STREAM {name} (id INT KEY, v VARCHAR) WITH (topic='{name}', partitions=1);\n"
        f"INSERT INTO {name} VALUES (1, 'ann'), (2, 'bob');\nSELECT * FROM {name} ORDER BY id;\n"
        f"SELECT nothing\nFROM {name};\n"
    )
    ran = subprocess.run(
        command(broker, tmp_path, "-f", str(script), "--output", "json"),
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [
        {"id": 1, "v": "ann"},
        {"id": 2, "v": "bob"},
    ]
    assert ran.returncode == 1
    assert "line 4, column 8: Unknown column nothing" in ran.stderr
    assert "Traceback" not in ran.stderr

    terminal = Terminal(command(broker, tmp_path))
    try:
        terminal.wait_for("sql>")
        terminal.type("help\r")
        terminal.wait_for("EMIT CHANGES")
        terminal.type("SET 'auto.offset.reset'='earliest';\r")
        terminal.wait_for("is earliest")
        terminal.type(f"SELECT *\rFROM {name}\rEMIT CHANGES;\r")
        terminal.wait_for("bob")
        terminal.type("\x03")
        terminal.wait_for("sql>")
        terminal.type("SHOW STREAMS;\r")
        terminal.wait_for("Kafka Topic")
        terminal.wait_for("sql>")
        terminal.type("exit\r")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()


def test_missing_script_and_unreachable_broker_are_reported(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "moldau", "sql", "--state-dir", str(tmp_path)]
    ran = subprocess.run([*words, "-f", "/nowhere.sql"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, "Unable to read file /nowhere.sql" in ran.stderr) == (1, True)
    unreachable = [*words, "--bootstrap-server", "localhost:1", "-e", "SHOW STREAMS"]
    ran = subprocess.run(unreachable, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 1
    assert "moldau doctor" in ran.stderr
    ran = subprocess.run([*words, "--help"], capture_output=True, text=True, timeout=60)
    assert "--keep-running" in ran.stdout


def test_missing_java_is_reported_with_the_package_to_install(broker: Cluster, tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": "/nowhere"}
    words = command(broker, tmp_path, "-e", "SHOW STREAMS")
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment)
    assert ran.returncode == 1
    assert ran.stderr.startswith("JAVA_HOME is /nowhere, which is not a Java installation.")
    assert "apt-get install openjdk" in ran.stderr
