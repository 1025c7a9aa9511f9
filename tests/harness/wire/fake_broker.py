"""A fake broker with prepared responses, for behaviour that a real broker shows only rarely."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.headers import decode_request_header, encode_response_header
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from moldau.protocol.schema import Message, decode, encode_bytes

Answer = Callable[[Any], Message]


class FakeBroker:
    """Listen on a free port of 127.0.0.1 within the context. `answers` are responses by API key."""

    def __init__(self, answers: Mapping[int, Answer] | None = None, *, advertised: str | None = None) -> None:
        self._answers: dict[int, Answer] = {ApiKey.METADATA: self._metadata, **(answers or {})}
        self._advertised = advertised
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.requests: list[Message] = []
        self.port = 0

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> FakeBroker:
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                writer.write(self._answer(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, frame: bytes) -> bytes:
        header, body = decode_request_header(memoryview(frame))
        key, version = header.api_key, header.api_version
        if key == ApiKey.API_VERSIONS:
            response: Message = self._versions()
        else:
            request = decode(APIS[key].request, frame, version, body)
            self.requests.append(request)
            response = self._answers[key](request)
        content = encode_response_header(key, version, header.correlation_id) + encode_bytes(
            response, version
        )
        return len(content).to_bytes(4, "big") + content

    def _versions(self) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=key, min_version=APIS[key].min_version, max_version=APIS[key].max_version)
            for key in (ApiKey.API_VERSIONS, *self._answers)
        ]
        return ApiVersionsResponse(api_keys=keys)

    def _metadata(self, request: object) -> MetadataResponse:
        return self.metadata()

    def metadata(self, **fields: Any) -> MetadataResponse:
        """Return metadata with this broker as the only one, at the advertised address if there is one."""
        host, _, port = (self._advertised or self.bootstrap).rpartition(":")
        broker = MetadataResponseBroker(node_id=1, host=host, port=int(port or self.port))
        return MetadataResponse(**{"brokers": [broker], "cluster_id": "fake", "controller_id": 1, **fields})
