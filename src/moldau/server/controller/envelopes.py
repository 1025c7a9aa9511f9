"""Envelopes (KIP-590): requests that a broker forwards to the active controller for a client.

The broker wraps the encoded request, in the version of the client, with the client's principal and address;
the controller unwraps it, calls the handler of its own listener and wraps the response. An error of the
envelope itself is not the client's fault, so the client receives UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import Any

from moldau.base.errors import ErrorCode, KafkaError
from moldau.network.connection import CloseConnection, java_address
from moldau.protocol.api_keys import ApiKey
from moldau.protocol.apis import APIS
from moldau.protocol.errors import DecodeError
from moldau.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from moldau.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from moldau.protocol.schema import Message, decode, decode_prefix, encode_bytes
from moldau.security.principal import decode_principal, encode_principal
from moldau.server.dispatch.context import RequestContext

#: The APIs that Kafka marks as forwardable.
FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
#: The address of a client of a simulated network.
_NO_ADDRESS = bytes(4)


def wrap_request(context: RequestContext, request: Message) -> EnvelopeRequest:
    header = _header(context, request)
    return EnvelopeRequest(
        request_data=encode_request_header(header) + encode_bytes(request, header.api_version),
        request_principal=encode_principal(context.principal),
        client_host_address=_address(context.client_host),
    )


def request_version(context: RequestContext | None, request: Message) -> int:
    """Return the client's version, or the newest one for a request that the node makes itself."""
    api = APIS[request.API_KEY]
    return context.api_version if context is not None and context.api_key == api.key else api.max_version


def _header(context: RequestContext, request: Message) -> RequestHeader:
    version = request_version(context, request)
    return RequestHeader(request.API_KEY, version, context.correlation_id, context.client_id)


def unwrap_response(context: RequestContext, request: Message, envelope: EnvelopeResponse) -> Any:
    if envelope.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise CloseConnection("the controller does not support this version of the request")
    if envelope.error_code != ErrorCode.NONE or envelope.response_data is None:
        problem = ErrorCode(envelope.error_code).name
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The controller refused the envelope: {problem}")
    header = _header(context, request)
    _, body = decode_response_header(header.api_key, header.api_version, envelope.response_data)
    return decode(APIS[header.api_key].response, envelope.response_data, header.api_version, body)


def unwrap_request(
    context: RequestContext, envelope: EnvelopeRequest
) -> tuple[RequestContext, RequestHeader, int]:
    """Return the context of the client, the header of its request and the offset of the body."""
    import ipaddress

    principal = decode_principal(envelope.request_principal)
    try:
        address = java_address(str(ipaddress.ip_address(bytes(envelope.client_host_address))))
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope") from error
    try:
        header, body = decode_request_header(envelope.request_data)
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Failed to parse request header from envelope: {error}"
        ) from error
    if header.api_key not in FORWARDABLE:
        name = APIS[header.api_key].name
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"API {name} is not enabled or is not eligible for forwarding"
        )
    forwarded = context._replace(
        api_key=header.api_key,
        api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        principal=principal,
        client_host=address,
        forwarded=True,
    )
    return forwarded, header, body


def decode_forwarded(envelope: EnvelopeRequest, header: RequestHeader, body: int) -> Message:
    try:
        request, _ = decode_prefix(
            APIS[header.api_key].request, envelope.request_data, header.api_version, body
        )
    except DecodeError as error:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Failed to parse forwarded request: {error}"
        ) from error
    return request


def wrap_response(header: RequestHeader, response: Message) -> EnvelopeResponse:
    head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    return EnvelopeResponse(response_data=head + encode_bytes(response, header.api_version))


def _address(host: str) -> bytes:
    import ipaddress

    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return _NO_ADDRESS
