"""The headers of requests and responses, coded by hand because they are read before the version is known.

Requests have header version 1, or 2 (with a tagged section) in flexible versions of their API. Responses have
header version 0 or 1 accordingly, but ApiVersions responses always have 0: the client does not know yet which
versions the server supports (KIP-511). The client id is a non-compact string in both request headers.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.errors import DecodeError, EncodeError
from moldau.protocol.primitives import MAX_STRING, skip_tags

_REQUEST = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_CORRELATION_AND_TAGS = struct.Struct(">ix")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def request_header_version(api_key: int, api_version: int) -> int:
    """Return 1 or 2, also for an unsupported version: its response needs the correlation id."""
    api = APIS.get(api_key)
    if api is None:
        raise DecodeError(f"unknown API key {api_key}")
    return 2 if api.is_flexible(api_version) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    return 0 if api_key == ApiKey.API_VERSIONS else request_header_version(api_key, api_version) - 1


def decode_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """Decode the header at the start of a frame; return it and the offset of the body."""
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = end = _REQUEST.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise DecodeError(
                    f"request header: a client id of {length} bytes extends past the end of the frame"
                )
            client_id = str(frame[position:end], "utf-8")
        if request_header_version(api_key, api_version) == 2:
            end = skip_tags(frame, end + 1, frame[end])
    except (struct.error, IndexError) as error:
        raise DecodeError("request header: the frame ends too early") from error
    except UnicodeDecodeError as error:
        raise DecodeError("request header: the client id is not UTF-8") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), end


def encode_request_header(header: RequestHeader) -> bytes:
    client_id = b"" if header.client_id is None else header.client_id.encode()
    if len(client_id) > MAX_STRING:
        raise EncodeError(f"the client id has {len(client_id)} bytes; at most {MAX_STRING} are allowed")
    length = -1 if header.client_id is None else len(client_id)
    fixed = _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, length)
    tags = b"\0" if request_header_version(header.api_key, header.api_version) == 2 else b""
    return fixed + client_id + tags


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    version = response_header_version(api_key, api_version)
    return (_CORRELATION_AND_TAGS if version == 1 else _CORRELATION).pack(correlation_id)


def decode_response_header(api_key: int, api_version: int, data: bytes | memoryview) -> tuple[int, int]:
    """Decode a response header; return the correlation id and the offset of the body."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(data)
        end = _CORRELATION.size
        if response_header_version(api_key, api_version) == 1:
            end = skip_tags(data, end + 1, data[end])
    except (struct.error, IndexError) as error:
        raise DecodeError("response header: the frame ends too early") from error
    return correlation_id, end
