"""A process forked by the fork server behaves like a process that Spark has started."""

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

from moldau.pipelines.spark.fork_server.start import client_path, server_environment
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
# Spark's workers exit without flushing their output.
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
        [sys.executable, *(program or ("-m", "moldau.pipelines.spark.fork_server.server")), str(socket)],
        stdin=subprocess.PIPE,
        env=server_environment(os.environ | {"PYTHONPATH": PATH, **variables}),
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (256, FILES)),
    )
    eventually(socket.exists, timeout=60)
    yield Server(process, socket)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=60)
    assert not socket.exists() and not socket.parent.exists(), "the server removes its folder"


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


def test_fork_gets_files_folder_arguments_and_environment_of_its_client(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "one", "two words")
    said = answer(process)
    assert said["parent"] == server.process.pid
    assert (said["arguments"], said["folder"]) == (["one", "two words"], str(folder))
    assert (said["colour"], said["read"]) == ("blue", "a line\n")
    # Standard files and the listed folder: no file of the server is open.
    assert len(said["open"]) == 4, said["open"]
    assert said["files"] == [FILES, FILES], "the limit that a JVM passes on"


def test_process_of_a_stopped_query_exits_without_traceback(server: Server, folder: Path) -> None:
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


def test_forks_draw_different_random_numbers(server: Server, folder: Path) -> None:
    first, second = (answer(client(server.socket, folder)) for _ in range(2))
    assert first["random"] != second["random"]
    assert first["pid"] != second["pid"]


def running_fork(process: subprocess.Popen[str]) -> int:
    """The process id of the fork of a client; the fork keeps running."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("a line\n")
    process.stdin.flush()
    return int(json.loads(process.stdout.readline())["pid"])


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def ended(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def test_fork_is_terminated_when_its_client_is_killed(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    pid = running_fork(process)
    kill(process)
    eventually(lambda: ended(pid), timeout=60, what="the fork to end")
    assert answer(client(server.socket, folder))["parent"] == server.process.pid, "the server keeps running"


def test_client_exits_with_the_signal_of_its_killed_fork(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    os.kill(running_fork(process), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL


def test_fork_and_client_may_be_killed_at_the_same_time(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, "stay")
    pid, files = running_fork(process), Path(f"/proc/{server.process.pid}/fd")
    before = len(list(files.iterdir()))
    with sockets.socket(sockets.AF_UNIX) as silent:
        # While the server waits for this client's request, it handles no other event.
        silent.connect(str(server.socket))
        eventually(lambda: len(list(files.iterdir())) > before, timeout=60, what="the server to accept")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: ended(pid) or " Z " in Path(f"/proc/{pid}/stat").read_text(), timeout=60)
        kill(process)
    assert answer(client(server.socket, folder))["parent"] == server.process.pid, "the server keeps running"


def test_fork_is_terminated_with_its_client_after_the_driver_has_exited(tmp_path: Path, folder: Path) -> None:
    # PYTHONSAFEPATH: modules are imported from PYTHONPATH only, not from the working directory.
    variables = {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{folder}:{PATH}"}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(tmp_path / "f", **variables) as server:
        process = client(server.socket, elsewhere, "stay", **variables)
        pid = running_fork(process)
        assert pid != process.pid
        assert server.process.stdin is not None
        server.process.stdin.close()
        late = client(server.socket, elsewhere, **variables)
        kill(process)
        eventually(lambda: ended(pid), timeout=60, what="the fork to end")
        assert answer(late)["pid"] == late.pid


def test_client_becomes_the_process_if_the_server_cannot_fork(tmp_path: Path, folder: Path) -> None:
    program = (
        "import os\nfrom moldau.pipelines.spark.fork_server.server import main\n"
        "def fork(): raise BlockingIOError(11, 'too many processes')\n"
        "os.fork = fork\nmain()"
    )
    with serving(tmp_path / "f", "-c", program) as server:
        for _ in range(2):
            process = client(server.socket, folder)
            assert answer(process)["pid"] == process.pid


def test_fork_warning_about_threads_is_suppressed(tmp_path: Path, folder: Path) -> None:
    program = """
import os, warnings
from moldau.pipelines.spark.fork_server.server import main
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


def test_server_folder_survives_the_exit_of_a_forked_driver() -> None:
    program = """
import os, sys
from moldau.pipelines.spark.fork_server.start import start_server
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
    eventually(lambda: not os.path.exists(folder), timeout=60, what="removal of the folder")


def test_server_imports_numba_but_compiles_no_kernel() -> None:
    program = """
import sys
from moldau.pipelines.spark.fork_server.server import preload
preload()
assert "moldau.pipelines.source.stream_reader" in sys.modules
assert "numba" in sys.modules
assert "moldau.pipelines.arrow.decode_kernel" not in sys.modules
assert "moldau.pipelines.arrow.encode_kernel" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], timeout=120, check=True)


def test_client_becomes_the_process_if_there_is_no_server(folder: Path) -> None:
    process = client(folder / "nothing", folder, "one")
    said = answer(process)
    assert (said["pid"], said["arguments"]) == (process.pid, ["one"])


def test_repeated_entries_of_pythonpath_are_ignored(server: Server, folder: Path) -> None:
    said = answer(client(server.socket, folder, PYTHONPATH=f"{PATH}:{PATH}"))
    assert said["parent"] == server.process.pid


def test_process_with_another_pythonpath_is_not_forked(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, PYTHONPATH="/nowhere")
    said = answer(process)
    assert (said["pid"], said["path"]) == (process.pid, "/nowhere")


def test_process_with_other_start_up_variables_is_not_forked(server: Server, folder: Path) -> None:
    process = client(server.socket, folder, PYTHONWARNINGS="ignore::ImportWarning")
    assert answer(process)["pid"] == process.pid
    process = client(server.socket, folder, ARROW_USER_SIMD_LEVEL="NONE")
    assert answer(process)["pid"] == process.pid
    said = answer(client(server.socket, folder, PYTHON_WORKER_FACTORY_PORT="1"))
    assert said["parent"] == server.process.pid, "variables of Spark may differ"


def test_fork_uses_the_time_zone_of_its_client(server: Server, folder: Path) -> None:
    assert answer(client(server.socket, folder, TZ="ABC-9"))["zone"] == "ABC"
