"""The orders service over HTTP, with Starlette: it writes orders to the topic and queries the view.

POST /orders                      {"customer": "alice", "product": "book", "quantity": 1, "price": 20}
GET  /orders/<id>?wait=10         the order; with `wait`, once it is decided, after at most this many seconds
GET  /orders?customer=alice&state=VALIDATED&text=book     a search in the view

Needs `pip install starlette uvicorn`.
"""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from topology import ORDERS

from moldau.client import Producer

Json = dict[str, Any]
_FIELDS = {"customer": str, "product": str, "quantity": int, "price": (int, float)}
_MAX_BODY = 64 * 1024
_START_TIMEOUT_S = 10.0


class OrdersService:
    """Creates orders and finds them in the view; `view` returns all current orders by id."""

    def __init__(self, bootstrap_servers: str, view: Callable[[], dict[str, Json]]) -> None:
        self._view = view
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers}, key_serializer="string", value_serializer="json"
        )

    def create(self, fields: Json) -> Json:
        order = {**fields, "id": uuid.uuid4().hex[:12], "state": "CREATED"}
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

    def search(self, fields: dict[str, str], text: str) -> list[Json]:
        return [
            order
            for _, order in sorted(self._view().items())
            if all(str(order.get(name)) == value for name, value in fields.items())
            and text.lower() in json.dumps(order).lower()
        ]

    def close(self) -> None:
        self._producer.close()


def application(service: OrdersService) -> Starlette:
    """Return the ASGI application; calls of the service block, so they run in Starlette's thread pool."""

    async def create(request: Request) -> Response:
        fields = _parse_order(await _body(request))
        return JSONResponse(await run_in_threadpool(service.create, fields), status_code=201)

    async def find(request: Request) -> Response:
        order_id = request.path_params["order_id"]
        order = await run_in_threadpool(
            service.find, order_id, _seconds(request.query_params.get("wait", "0"))
        )
        if order is None:
            raise HTTPException(404, f"there is no order {order_id}")
        return JSONResponse(order)

    async def search(request: Request) -> Response:
        fields = dict(request.query_params)
        text = fields.pop("text", "")
        return JSONResponse(await run_in_threadpool(service.search, fields, text))

    routes = [
        Route("/orders", create, methods=["POST"]),
        Route("/orders", search, methods=["GET"]),
        Route("/orders/{order_id}", find, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _error})


async def _error(request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    return JSONResponse({"error": detail}, status_code=status)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise HTTPException(413, f"an order has at most {_MAX_BODY} bytes")
    return bytes(body)


def _parse_order(body: bytes) -> Json:
    try:
        order = json.loads(body)
    except ValueError as error:
        raise HTTPException(400, f"an order is a JSON object: {error}") from error
    if not isinstance(order, dict):
        raise HTTPException(400, "an order is a JSON object")
    for name, kind in _FIELDS.items():
        if not isinstance(order.get(name), kind) or isinstance(order[name], bool):
            fields = ", ".join(_FIELDS)
            raise HTTPException(
                400, f"an order has the fields {fields}; {name} is missing or of another type"
            )
    return {name: order[name] for name in _FIELDS}


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise HTTPException(400, f"wait is a number of seconds, not {text!r}") from error


@contextmanager
def serving(service: OrdersService, port: int) -> Iterator[str]:
    """Serve HTTP in a background thread; yield the base URL. Port 0 takes any free port."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        config = uvicorn.Config(application(service), log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _wait_until_started(server)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            service.close()


def _wait_until_started(server: uvicorn.Server) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not server.started:
        if time.monotonic() > deadline:
            raise TimeoutError("the HTTP server has not started")
        time.sleep(0.01)
