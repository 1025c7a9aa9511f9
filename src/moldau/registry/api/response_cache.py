"""Responses that needed no record, kept with the request they answer until the state changes.

The cache is bounded in bytes, those of the keys included: a client chooses paths, queries and bodies. It is
emptied when it is full, because a look-up must cost no more than that of a dictionary.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from moldau.security.principal import KafkaPrincipal

_MAX_BYTES: Final = 4 << 20
_MAX_RESPONSE_BYTES: Final = 16 * 1024
#: The memory of an entry besides its bytes: the tuples, the headers of four objects, and the dictionary.
_OVERHEAD: Final = 500

#: Method, path, query, body, and the principal if responses depend on it.
RequestKey = tuple[str, bytes, bytes, bytes, KafkaPrincipal | None]


class Response(NamedTuple):
    status: int
    body: bytes
    #: Whether it stays right though the state of another instance has changed.
    immutable: bool


class ResponseCache:
    def __init__(self, most_bytes: int = _MAX_BYTES) -> None:
        self._most_bytes = most_bytes
        self._responses: dict[RequestKey, Response] = {}
        self._generation: int | None = None
        self.size = 0

    def get(self, key: RequestKey, generation: int) -> Response | None:
        """Return the response to a request in this generation of the state."""
        if generation != self._generation:
            self._clear()
            self._generation = generation
        return self._responses.get(key)

    def put(self, key: RequestKey, generation: int, response: Response) -> None:
        size = len(key[1]) + len(key[2]) + len(key[3]) + len(response.body)
        size += len(key[4].name) if key[4] is not None else 0
        if generation != self._generation or size > _MAX_RESPONSE_BYTES or key in self._responses:
            return
        size += _OVERHEAD
        if self.size + size > self._most_bytes:
            self._clear()
        self._responses[key] = response
        self.size += size

    def _clear(self) -> None:
        self._responses.clear()
        self.size = 0
