"""A target that hangs holds its own connector and no other."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.harness.connect import lines_of
from tests.harness.mirror import produce
from tests.harness.waiting import eventually
from tests.integration.connect.conftest import StartWorker


@pytest.mark.timeout(120)
def test_a_target_that_hangs_holds_only_its_own_connector(
    bootstrap: str, group: str, start_worker: StartWorker, tmp_path: Path
) -> None:
    asked, released = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.set()
            released.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    topic, out = f"{group}-lines", tmp_path / "out.txt"
    try:
        produce(bootstrap, topic, ["1"])
        worker = start_worker()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        worker.create("slow", {"connector.class": "HttpSink", "topics": topic, "http.api.url": url})
        assert asked.wait(60), worker.log
        file = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic}
        worker.create("fast", file)
        eventually(lambda: lines_of(out) == ["1"], what=worker.log)
        produce(bootstrap, topic, ["2"])
        eventually(lambda: lines_of(out) == ["1", "2"], what=worker.log)
        assert worker.states("slow") == ("RUNNING", ["RUNNING"])
        assert worker.api("GET", "/connectors").status == 200
    finally:
        released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
