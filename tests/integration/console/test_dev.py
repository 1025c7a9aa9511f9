"""`moldau dev` with the console: everything that needs no further process is ready at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from moldau.local.ports import ReservedPorts
from tests.harness.rest_proxy import Api
from tests.harness.waiting import eventually


def test_a_port_for_the_console_starts_it_with_sql_and_pipelines(tmp_path: Path) -> None:
    reserved = ReservedPorts("127.0.0.1")
    port = reserved.choose()
    reserved.release()
    command = [sys.executable, "-m", "moldau", "dev", "--port", "0", "--console-port", str(port)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
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
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
