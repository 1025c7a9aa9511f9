"""Processes that are forked are in no way different from processes that are started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.pipelines.forks import client_path, server_environment
from tests.harness.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")

PATH = os.environ.get("PYTHONPATH", "") + ":/first:/second"
PROBE = """
import json, os, sys, time
import numpy
said = {
    "pid": os.getpid(), "parent": os.getppid(), "arguments": sys.argv[1:], "folder": os.getcwd(),
    "colour": os.environ.get("COLOUR"), "path": os.environ.get("PYTHONPATH"), "read": sys.stdin.readline(),
    "random": numpy.random.random(),
    "open": sorted(map(int, os.listdir("/proc/self/fd"))),
}
print(json.dumps(said))
print("and an error", file=sys.stderr)
if sys.argv[1:] == ["stay"]:
    time.sleep(600)
# As Spark's workers end: without a look at what is still to be written.
os._exit(7)
"""


class Server(NamedTuple):
    process: subprocess.Popen[bytes]
    socket: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    socket = tmp_path_factory.mktemp("f") / "socket"
    process = subprocess.Popen(
        [sys.executable, "-m", "moldau.pipelines.forks.server", str(socket)],
        stdin=subprocess.PIPE,
        env=server_environment(os.environ | {"PYTHONPATH": PATH}),
    )
    eventually(socket.exists, timeout=60)
    yield Server(process, socket)
    process.communicate(timeout=60)
    assert not socket.exists() and not socket.parent.exists(), "the server takes its folder away"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "probe.py").write_text(PROBE)
    return tmp_path


def client(socket: Path, folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-S", str(client_path()), str(socket), sys.executable, "-m", "probe"]
    return subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**server_environment(os.environ), "PYTHONPATH": PATH, "COLOUR": "blue", **variables},
    )


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate("a line\n", timeout=60)
    assert err == "and an error\n"
    assert process.returncode == 7
    said: dict[str, Any] = json.loads(out)
    return said


def test_a_fork_has_the_files_folder_arguments_and_variables_of_its_client(
    server: Server, folder: Path
) -> None:
    process = client(server.socket, folder, "one", "two words")
    said = answer(process)
    assert said["parent"] == server.process.pid
    assert (said["arguments"], said["folder"]) == (["one", "two words"], str(folder))
    assert (said["colour"], said["read"]) == ("blue", "a line\n")
    # Standard files and the folder that is being listed: nothing of the server's is left open.
    assert len(said["open"]) == 4, said["open"]


def test_two_forks_draw_other_random_numbers(server: Server, folder: Path) -> None:
    first, second = (answer(client(server.socket, folder)) for _ in range(2))
    assert first["random"] != second["random"]
    assert first["pid"] != second["pid"]


def test_a_fork_ends_when_its_client_is_killed(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("a line\n")
    process.stdin.flush()
    pid = json.loads(process.stdout.readline())["pid"]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    eventually(lambda: not Path(f"/proc/{pid}").exists(), timeout=60, what="the fork to end")
    assert answer(client(server.socket, folder))["parent"] == server.process.pid, "and the server goes on"


def test_a_fork_that_is_killed_ends_its_client(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("a line\n")
    process.stdin.flush()
    os.kill(json.loads(process.stdout.readline())["pid"], signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL


def test_without_a_server_the_client_is_the_process(folder: Path) -> None:
    process = client(folder / "nothing", folder, "one")
    said = answer(process)
    assert (said["pid"], said["arguments"]) == (process.pid, ["one"])


def test_folders_may_be_named_twice(server: Server, folder: Path) -> None:
    said = answer(client(server.socket, folder, PYTHONPATH=f"{PATH}:{PATH}"))
    assert said["parent"] == server.process.pid


def test_a_process_that_wants_another_path_is_not_forked(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, PYTHONPATH="/nowhere")
    said = answer(process)
    assert (said["pid"], said["path"]) == (process.pid, "/nowhere")
