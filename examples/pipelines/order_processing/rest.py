"""The orders service over HTTP: orders come in and are written to the log, the view answers questions.

POST /orders                      {"customer": "alice", "product": "book", "quantity": 1, "price": 20}
GET  /orders/<id>?wait=10         the order as it is; with `wait`, when it has been decided
GET  /orders?customer=alice&state=VALIDATED&text=book     a search in the view
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from topology import ORDERS

from moldau.client import Producer

Json = dict[str, Any]
_FIELDS = {"customer": str, "product": str, "quantity": int, "price": (int, float)}
_MAX_BODY = 64 * 1024


class BadOrder(ValueError):
    """Says what is wrong with what came in."""


class OrdersService:
    """`view` gives all orders as they are now, by id."""

    def __init__(self, bootstrap_servers: str, view: Callable[[], dict[str, Json]]) -> None:
        self._view = view
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers}, key_serializer="string", value_serializer="json"
        )

    def create(self, body: bytes) -> Json:
        order = {**_checked(body), "id": uuid.uuid4().hex[:12], "state": "CREATED"}
        self._producer.send(ORDERS, order, order["id"]).result(30)
        return order

    def find(self, order_id: str, wait_seconds: float) -> Json | None:
        deadline = time.monotonic() + wait_seconds
        while True:
            order = self._view().get(order_id)
            decided = order is not None and order["state"] != "CREATED"
            if decided or time.monotonic() >= deadline:
                return order
            time.sleep(0.1)

    def search(self, wanted: dict[str, str]) -> list[Json]:
        text = wanted.pop("text", "").lower()
        return [
            order
            for _, order in sorted(self._view().items())
            if all(str(order.get(name)) == value for name, value in wanted.items())
            and text in json.dumps(order).lower()
        ]

    def close(self) -> None:
        self._producer.close()


def _checked(body: bytes) -> Json:
    try:
        order = json.loads(body)
    except ValueError as error:
        raise BadOrder(f"an order is a JSON object: {error}") from error
    if not isinstance(order, dict):
        raise BadOrder("an order is a JSON object")
    for name, kind in _FIELDS.items():
        if not isinstance(order.get(name), kind) or isinstance(order[name], bool):
            raise BadOrder(
                f"an order has the fields {', '.join(_FIELDS)}; {name} is missing or of another type"
            )
    return {name: order[name] for name in _FIELDS}


def _handler(service: OrdersService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if self.path != "/orders" or length > _MAX_BODY:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "POST /orders takes an order of at most 64 KiB"})
                return
            try:
                self._answer(HTTPStatus.CREATED, service.create(self.rfile.read(length)))
            except BadOrder as error:
                self._answer(HTTPStatus.BAD_REQUEST, {"error": str(error)})

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            match parts.path.strip("/").split("/"):
                case ["orders"]:
                    self._answer(HTTPStatus.OK, service.search(asked))
                case ["orders", order_id]:
                    order = service.find(order_id, float(asked.get("wait", 0)))
                    missing = {"error": f"there is no order {order_id}"}
                    self._answer(HTTPStatus.OK if order else HTTPStatus.NOT_FOUND, order or missing)
                case _:
                    self._answer(HTTPStatus.NOT_FOUND, {"error": "see /orders"})

        def _answer(self, status: HTTPStatus, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            return

    return Handler


@contextmanager
def serving(service: OrdersService, port: int) -> Iterator[str]:
    """The address at which the service listens, in a thread of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(service))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        service.close()
