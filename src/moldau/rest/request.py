"""A request as the handlers see it, and their response."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs

from moldau.http.asgi import JSON, PRINCIPAL, Header, Receive, Scope, Send, encode_json, header
from moldau.http.errors import ApiError
from moldau.http.requests import read_body
from moldau.rest.errors import bad_request, unprocessable
from moldau.rest.fields import check_fields
from moldau.rest.formats.plain import NumberOutOfRange, load
from moldau.rest.values import INT32, natural

if TYPE_CHECKING:
    from moldau.rest.engine.clients import Clients
    from moldau.rest.service import RestProxy


_MAX_FIELDS: Final = 100


class Response(NamedTuple):
    status: int = 200
    body: bytes = b""
    content_type: bytes | None = JSON
    headers: tuple[Header, ...] = ()


def json_response(value: Any, status: int = 200, headers: tuple[Header, ...] = ()) -> Response:
    return Response(status, encode_json(value), JSON, headers)


NO_CONTENT = Response(204, b"", None)


def check_json(scope: Scope) -> None:
    """Raise `ApiError` 415 if the body is announced as anything but JSON."""
    kind = header(scope, b"content-type")
    if kind is not None and kind.partition(b";")[0].strip().lower() != JSON:
        raise ApiError(415, 415, "HTTP 415 Unsupported Media Type")


class Request:
    """A request with the variables of its path and the clients of its user."""

    __slots__ = ("_query", "_schema", "clients", "params", "proxy", "receive", "scope", "send")

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        params: dict[str, str],
        proxy: RestProxy,
        clients: Clients,
        schema: str = "",
    ) -> None:
        """`schema` is the name of the body's schema in the OpenAPI description."""
        self.scope, self.receive, self.send = scope, receive, send
        self.params, self.proxy, self.clients = params, proxy, clients
        self._query: dict[str, list[str]] | None = None
        self._schema = schema

    @property
    def base_url(self) -> str:
        """The URL of the proxy, for links."""
        advertised = self.proxy.settings.base_url
        if advertised is not None:
            return advertised
        host = header(self.scope, b"host") or b"localhost"
        return f"{self.scope['scheme']}://{host.decode('latin-1')}"

    @property
    def owner(self) -> Hashable:
        """Who sends the request: the credentials for Kafka and the principal at the proxy."""
        return self.clients.owner, self.scope.get(PRINCIPAL)

    def query(self, name: str, default: str = "") -> str:
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                self._query = parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
            except ValueError:
                raise bad_request(f"The query has more than {_MAX_FIELDS} parameters.") from None
        values = self._query.get(name)
        return values[0] if values else default

    def number(self, name: str, default: int) -> int:
        text = self.query(name)
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise ApiError(404, 404, f"The query parameter {name} is not a number.") from None

    def flag(self, name: str) -> bool:
        return self.query(name).lower() == "true"

    def path_number(self, name: str) -> int:
        """Return the number of a partition or broker in the path; a path without one does not exist."""
        found = natural(self.params[name], INT32)
        if found is None:
            raise ApiError(404, 404, "HTTP 404 Not Found")
        return found

    async def body(self) -> bytes:
        return await read_body(self.scope, self.receive, self.proxy.settings.max_request_bytes)

    async def disconnected(self) -> None:
        """Return when the client has closed the connection; call it after the body was read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def json(self) -> Any:
        """Return the body, None if it is empty; `ApiError` 400 if it is not JSON.

        `ApiError` 422 if it has fields that its schema does not describe, or half of a surrogate pair, which
        no name and no config of Kafka can contain.
        """
        body = await self.body()
        if not body.strip():
            return None
        value = parse(body)
        if b"\\u" in body:
            _check_text(value)
        if self._schema:
            check_fields(self._schema, value)
        return value


def parse(text: bytes | str) -> Any:
    """Parse JSON; `ApiError` 400 says what is wrong with it."""
    try:
        return load(text)
    except RecursionError:
        raise bad_request("The JSON is nested too deeply.") from None
    except NumberOutOfRange as error:
        raise unprocessable(422, f"Error processing JSON: {error}") from None
    except UnicodeDecodeError as error:
        raise bad_request(f"The body is not UTF-8 (byte {error.start}).") from None
    except ValueError as error:
        raise bad_request(f"Error processing JSON: {error}") from None


def _check_text(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise unprocessable(422, "A text of the body is not valid in UTF-8.") from None
    except RecursionError:
        raise bad_request("The JSON is nested too deeply.") from None
