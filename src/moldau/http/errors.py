"""Errors of HTTP services, in the form of Confluent's: `{"error_code": 40401, "message": "…"}`."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.http.asgi import JSON, Header, Send, send_json


class ApiError(Exception):
    """An expected failure of a request: HTTP status, error code and a sentence for the client.

    Error codes of services are the status with two more digits, or the status itself.
    """

    def __init__(self, status: int, error_code: int, message: str, headers: Iterable[Header] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.headers = tuple(headers)


async def send_error(send: Send, error: ApiError, content_type: bytes = JSON) -> None:
    body = {"error_code": error.error_code, "message": error.message}
    await send_json(send, error.status, body, content_type, error.headers)
