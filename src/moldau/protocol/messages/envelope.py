"""Envelope (API key 58): version 0, flexible from 0."""

from __future__ import annotations

from moldau.protocol.api_keys import ApiKey
from moldau.protocol.schema import Message, bytes_, int16


class EnvelopeRequest(Message, api_key=ApiKey.ENVELOPE, versions="0", flexible="0+"):
    request_data: bytes = bytes_("0+", secret=True)
    request_principal: bytes | None = bytes_("0+", nullable="0+")
    client_host_address: bytes = bytes_("0+")


class EnvelopeResponse(Message, api_key=ApiKey.ENVELOPE, versions="0", flexible="0+"):
    response_data: bytes | None = bytes_("0+", default=None, nullable="0+", secret=True)
    error_code: int = int16("0+")
