"""`moldau dev` with the console: everything that needs no further process is ready at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moldau.local.ports import ReservedPorts
from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually


@contextmanager
def console_of_dev(folder: Path, *options: str) -> Iterator[Api]:
    """Run `moldau dev` with a console until it can be used; it must stop with Ctrl-C."""
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    reserved.release()
    command = [sys.executable, "-m", "moldau", "dev", "--port", "0", "--console-port", str(port), *options]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    api = Api(port, {"Accept": "application/json"})
    try:
        assert process.stdout is not None
        printed = ""
        while "web console" not in printed:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        assert f"http://localhost:{port}" in printed

        def ready() -> bool:
            try:
                return api("GET", "/healthz").status == 200
            except OSError:
                return False

        eventually(ready, timeout=60)
        yield api
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_for_the_console_starts_it_with_sql_and_pipelines(tmp_path: Path) -> None:
    with console_of_dev(tmp_path) as api:
        pipelines = api("GET", "/pipelines").body
        assert pipelines == {
            "configured": True,
            "folder": str(tmp_path / "state" / "pipelines"),
            "pipelines": [],
        }
        # The tests of pipelines need PySpark and Java, too.
        assert api("GET", "/sql").body["configured"]
        html = {"Accept": "text/html"}
        for path, remedy in (("/schemas", b"--registry http://"), ("/connectors", b"--connect http://")):
            body = api.raw("GET", path, headers=html)[1]
            assert b"moldau console --bootstrap-server localhost:" in body and remedy in body
            assert b"moldau dev --all --console" in body


def test_the_console_of_a_secured_broker_requires_a_login(tmp_path: Path) -> None:
    with console_of_dev(tmp_path, "--secure") as api:
        assert api("GET", "/topics").status == 401
        assert b"Sign in" in api.raw("GET", "/login", headers={"Accept": "text/html"})[1]
