"""Frames of requests and responses: the size prefix, the header and the body."""

from __future__ import annotations

import logging
import struct
from collections.abc import Mapping

from moldau.base.errors import ErrorCode
from moldau.network.connection import CloseConnection
from moldau.network.responses import Parts
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.headers import RequestHeader, decode_request_header, encode_response_header
from moldau.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from moldau.protocol.schema import DecodeError, EncodeError, Message, decode_prefix, encode
from moldau.server.dispatch.context import ServedApi

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")


def decode_frame(
    apis: Mapping[int, ServedApi], frame: memoryview
) -> tuple[RequestHeader, ServedApi | None, Message | None]:
    """Return the header and the body of a request; None for an API or version that is not served."""
    try:
        header, offset = decode_request_header(frame)
        served = apis.get(header.api_key)
        if served is None or not served.serves(header.api_version):
            return header, served, None
        # Trailing bytes are no error: some releases of librdkafka send a few bytes too many.
        request, _ = decode_prefix(served.api.request, frame, header.api_version, offset)
    except DecodeError as error:
        raise CloseConnection(f"a request cannot be decoded: {error}") from error
    return header, served, request


def encode_frame(header: RequestHeader, response: Message | None) -> Parts:
    """Encode a response; the result is empty if the client expects none."""
    if response is None:
        return ()
    try:
        body = encode(response, header.api_version)
    except EncodeError as error:
        logger.error("a response cannot be encoded in version %d: %.1000r", header.api_version, response)
        raise CloseConnection(f"a response cannot be encoded: {error}") from error
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    size = len(head)
    for part in body:
        size += len(part)
    if body and isinstance(body[0], bytes):
        return [_SIZE.pack(size) + head + body[0], *body[1:]]
    return [_SIZE.pack(size) + head, *body]


def not_served(served: ServedApi | None, header: RequestHeader) -> Parts:
    """Answer ApiVersions in an unknown version with the known versions, in version 0 (KIP-511).

    Any other API or version that is not served closes the connection.
    """
    if served is None:
        raise CloseConnection(f"API {header.api_key} is not served on this listener")
    if header.api_key != ApiKey.API_VERSIONS:
        raise CloseConnection(f"{served.api.name} version {header.api_version} is not served")
    versions = ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=served.min_version, max_version=served.max_version
    )
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[versions])
    return encode_frame(header._replace(api_version=0), response)
