"""`moldau dev --metrics-port`: every node has its own, and a port that is taken is named."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from moldau.local.ports import ReservedPorts


def dev(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "moldau", "dev", "--port", "0", *options]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_every_node_of_a_cluster_has_a_port(tmp_path: Path) -> None:
    reserved = ReservedPorts("127.0.0.1")
    first = reserved.choose((0, 1))
    process = dev(tmp_path, "--brokers", "2", "--metrics-port", str(first))
    try:
        assert process.stdout is not None
        printed = ""
        while "Press Ctrl-C" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        for port in (first, first + 1):
            assert f"http://localhost:{port}/metrics" in printed
            with urllib.request.urlopen(f"http://localhost:{port}/readyz", timeout=30) as answer:
                assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
        reserved.release()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        printed, _ = dev(tmp_path, "--metrics-port", str(port)).communicate(timeout=60)
    assert f"metrics.port cannot use 127.0.0.1:{port}: Address already in use" in printed
