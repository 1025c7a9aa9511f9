"""Processes that are forked are in no way different from processes that are started."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket as sockets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.pipelines.spark.forks import client_path, server_environment
from tests.harness.waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")

PATH = os.environ.get("PYTHONPATH", "") + ":/first:/second"
_, FILES = resource.getrlimit(resource.RLIMIT_NOFILE)
PROBE = """
import json, os, resource, sys, time
import numpy
said = {
    "pid": os.getpid(), "parent": os.getppid(), "arguments": sys.argv[1:], "folder": os.getcwd(),
    "colour": os.environ.get("COLOUR"), "path": os.environ.get("PYTHONPATH"), "read": sys.stdin.readline(),
    "random": numpy.random.random(), "zone": time.strftime("%Z"),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
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


@contextmanager
def serving(folder: Path, *program: str, **variables: str) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    socket = folder / "socket"
    process = subprocess.Popen(
        [sys.executable, *(program or ("-m", "moldau.pipelines.spark.forks.server")), str(socket)],
        stdin=subprocess.PIPE,
        env=server_environment(os.environ | {"PYTHONPATH": PATH, **variables}),
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (256, FILES)),
    )
    eventually(socket.exists, timeout=60)
    yield Server(process, socket)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)
    assert not socket.exists() and not socket.parent.exists(), "the server takes its folder away"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("f")) as started:
        yield started


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
    assert said["files"] == [FILES, FILES], "as for what a JVM starts"


def test_a_process_that_spark_does_not_await_any_more_ends_quietly(server: Server, folder: Path) -> None:
    text = (
        "import sys\nfrom pyspark.errors import PySparkRuntimeError\n"
        "raise PySparkRuntimeError(errorClass=sys.argv[1], messageParameters={'errors': 'none'})"
    )
    (folder / "probe.py").write_text(text)
    gone, broken = (
        client(server.socket, folder, each) for each in ("CANNOT_OPEN_SOCKET", "CANNOT_ACCESS_TO_DUNDER")
    )
    assert gone.communicate(timeout=60) == ("", "") and gone.returncode == 1
    assert "Traceback" in broken.communicate(timeout=60)[1] and broken.returncode == 1


def test_two_forks_draw_other_random_numbers(server: Server, folder: Path) -> None:
    first, second = (answer(client(server.socket, folder)) for _ in range(2))
    assert first["random"] != second["random"]
    assert first["pid"] != second["pid"]


def staying(process: subprocess.Popen[str]) -> int:
    """The process that a client stands for, which stays."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("a line\n")
    process.stdin.flush()
    return int(json.loads(process.stdout.readline())["pid"])


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def ended(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def test_a_fork_ends_when_its_client_is_killed(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    pid = staying(process)
    kill(process)
    eventually(lambda: ended(pid), timeout=60, what="the fork to end")
    assert answer(client(server.socket, folder))["parent"] == server.process.pid, "and the server goes on"


def test_a_fork_that_is_killed_ends_its_client(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    os.kill(staying(process), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL


def test_a_fork_and_its_client_may_be_killed_at_once(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    pid, files = staying(process), Path(f"/proc/{server.process.pid}/fd")
    before = len(list(files.iterdir()))
    with sockets.socket(sockets.AF_UNIX) as silent:
        # While the server waits for what this client has to say, it hears of neither.
        silent.connect(str(server.socket))
        eventually(lambda: len(list(files.iterdir())) > before, timeout=60, what="the server to accept")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: ended(pid) or " Z " in Path(f"/proc/{pid}/stat").read_text(), timeout=60)
        kill(process)
    assert answer(client(server.socket, folder))["parent"] == server.process.pid, "and the server goes on"


def test_forks_end_with_their_clients_also_when_the_driver_is_gone(tmp_path: Path, folder: Path) -> None:
    # With this only the path says where modules are, not the folder a process is started in.
    variables = {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{folder}:{PATH}"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(tmp_path / "f", **variables) as server:
        process = client(server.socket, elsewhere, "stay", **variables)
        pid = staying(process)
        assert pid != process.pid
        assert server.process.stdin is not None
        server.process.stdin.close()
        late = client(server.socket, elsewhere, **variables)
        kill(process)
        eventually(lambda: ended(pid), timeout=60, what="the fork to end")
        assert answer(late)["pid"] == late.pid


def test_where_no_more_forks_are_to_be_had_the_client_is_the_process(tmp_path: Path, folder: Path) -> None:
    program = (
        "import os\nfrom moldau.pipelines.spark.forks.server import main\n"
        "def fork(): raise BlockingIOError(11, 'too many processes')\n"
        "os.fork = fork\nmain()"
    )
    with serving(tmp_path / "f", "-c", program) as server:
        for _ in range(2):
            process = client(server.socket, folder)
            assert answer(process)["pid"] == process.pid


def test_that_python_warns_of_forks_of_processes_with_threads_is_not_heard(
    tmp_path: Path, folder: Path
) -> None:
    program = """
import os, warnings
from moldau.pipelines.spark.forks.server import main
real = os.fork
def fork():
    made = real()
    if made:
        warnings.warn("several threads", DeprecationWarning)
    return made
os.fork = fork
warnings.filterwarnings("error", message="several threads")
main()
"""
    with serving(tmp_path / "f", "-c", program) as server:
        assert answer(client(server.socket, folder))["parent"] == server.process.pid


def test_a_fork_of_the_driver_takes_nothing_away() -> None:
    program = """
import os, sys
from moldau.pipelines.spark.forks import start_server
folder = os.path.dirname(start_server(os.environ))
if os.fork() == 0:
    sys.exit()
os.wait()
print(os.path.exists(folder), folder)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    existed, folder = done.stdout.split()
    assert existed == "True"
    eventually(lambda: not os.path.exists(folder), timeout=60, what="the folder to go with the driver")


def test_the_server_compiles_nothing() -> None:
    program = """
import sys
from moldau.pipelines.arrow import machine_code
machine_code.find = lambda name, key: None
from moldau.pipelines.spark.forks.server import preload
preload()
assert "moldau.pipelines.source.stream_reader" in sys.modules
assert "numba" not in sys.modules
assert "moldau.pipelines.arrow.reading" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)


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


def test_nor_is_one_that_wants_what_python_or_libraries_read_when_they_start(
    server: Server, folder: Path
) -> None:
    process = client(server.socket, folder, PYTHONWARNINGS="ignore::ImportWarning")
    assert answer(process)["pid"] == process.pid
    process = client(server.socket, folder, ARROW_USER_SIMD_LEVEL="NONE")
    assert answer(process)["pid"] == process.pid
    said = answer(client(server.socket, folder, PYTHON_WORKER_FACTORY_PORT="1"))
    assert said["parent"] == server.process.pid, "Spark's own variables are different ones"


def test_a_fork_lives_in_the_time_zone_of_its_client(server: Server, folder: Path) -> None:
    assert answer(client(server.socket, folder, TZ="ABC-9"))["zone"] == "ABC"
