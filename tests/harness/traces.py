"""An OTLP receiver: an HTTP server that decodes the spans which brokers, clients and pipelines export."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from moldau.local.ports import ReservedPorts
from tests.harness.waiting import eventually

HOST = "127.0.0.1"


@dataclass(frozen=True)
class ReceivedSpan:
    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    #: Trace id and span id of each.
    links: list[tuple[str, str]]
    attributes: dict[str, str | int | bool]
    resource: dict[str, str | int | bool]
    failed: bool
    start_ns: int
    end_ns: int


@dataclass
class TraceReceiver:
    endpoint: str
    spans: list[ReceivedSpan] = field(default_factory=list)

    def wait_for(self, wanted: Callable[[ReceivedSpan], bool], count: int = 1) -> list[ReceivedSpan]:
        """Return the spans that match, once there are enough."""

        def found() -> list[ReceivedSpan]:
            matching = [span for span in list(self.spans) if wanted(span)]
            return matching if len(matching) >= count else []

        return eventually(found, timeout=30, what=f"{count} spans; received {self.spans}")

    def named(self, name: str, count: int = 1) -> list[ReceivedSpan]:
        return self.wait_for(lambda span: span.name == name, count)

    def receive(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _attributes(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_received(span, resource) for span in scope.spans]


def _received(span: Any, resource: dict[str, str | int | bool]) -> ReceivedSpan:
    return ReceivedSpan(
        service=str(resource["service.name"]),
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=[(each.trace_id.hex(), each.span_id.hex()) for each in span.links],
        attributes=_attributes(span.attributes),
        resource=resource,
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
    )


def _attributes(pairs: Any) -> dict[str, str | int | bool]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def uninstall(monkeypatch: pytest.MonkeyPatch, *importers: str) -> None:
    """Make imports of OpenTelemetry fail, also in modules that have imported it before."""
    loaded = [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]
    for name in ("opentelemetry", *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    for name in importers:
        monkeypatch.delitem(sys.modules, name, raising=False)


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    ports = ReservedPorts(HOST)
    port = ports.choose()
    ports.release()
    receiver = TraceReceiver(f"http://{HOST}:{port}/v1/traces")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.receive(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer((HOST, port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
