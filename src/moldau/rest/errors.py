"""The errors of the REST proxy: Confluent's codes, and Kafka's errors as such codes."""

from __future__ import annotations

from typing import Final

from moldau.base.errors import AUTHORIZATION_ERRORS, ErrorCode, KafkaError
from moldau.http.errors import ApiError

BAD_REQUEST: Final = 400
KAFKA_BAD_REQUEST: Final = 40002
KAFKA_AUTHENTICATION: Final = 40101
KAFKA_AUTHORIZATION: Final = 40301
TOPIC_NOT_FOUND: Final = 40401
PARTITION_NOT_FOUND: Final = 40402
UNKNOWN_TOPIC_OR_PARTITION: Final = 40403
KAFKA_ERROR: Final = 50002
KAFKA_RETRIABLE: Final = 50003

_AUTHENTICATION: Final = frozenset(
    {
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
    }
)
_REFUSED: Final = frozenset(
    {
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.TOPIC_DELETION_DISABLED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
    }
)


def of_kafka(error: KafkaError) -> ApiError:
    """Return the answer to a request that Kafka refused."""
    message, code = str(error), error.code
    if code in _AUTHENTICATION:
        return ApiError(401, KAFKA_AUTHENTICATION, message)
    if code in AUTHORIZATION_ERRORS:
        return ApiError(403, KAFKA_AUTHORIZATION, message)
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return ApiError(404, UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if code in _REFUSED:
        return ApiError(400, KAFKA_BAD_REQUEST, message)
    if code is ErrorCode.BROKER_NOT_AVAILABLE:
        return ApiError(503, 50302, message)
    if code is ErrorCode.REQUEST_TIMED_OUT or code.retriable:
        return ApiError(500, KAFKA_RETRIABLE, message)
    return ApiError(500, KAFKA_ERROR, message)


def bad_request(detail: str) -> ApiError:
    return ApiError(400, BAD_REQUEST, f"Bad Request: {detail}")


def not_found(detail: str) -> ApiError:
    return ApiError(404, 404, detail)


def unprocessable(error_code: int, message: str) -> ApiError:
    return ApiError(422, error_code, message)


def invalid_payload(cause: str) -> ApiError:
    return unprocessable(42206, f"Payload error. {cause}")


def serialization(cause: str) -> ApiError:
    return unprocessable(42207, f"Error serializing message. {cause}")


def nested_too_deeply() -> ApiError:
    return unprocessable(422, "The data is nested too deeply.")


def topic_not_found() -> ApiError:
    return ApiError(404, TOPIC_NOT_FOUND, "Topic not found.")


def partition_not_found() -> ApiError:
    return ApiError(404, PARTITION_NOT_FOUND, "Partition not found.")


def instance_not_found() -> ApiError:
    return ApiError(404, 40403, "Consumer instance not found.")


def format_mismatch() -> ApiError:
    message = "The requested embedded data format does not match the deserializer for this consumer instance"
    return ApiError(406, 40601, message)


def already_exists() -> ApiError:
    message = "Consumer with specified consumer ID already exists in the specified consumer group."
    return ApiError(409, 40902, message)


def illegal_state(cause: str) -> ApiError:
    return ApiError(409, 40903, f"Illegal state: {cause}")


def too_many_consumers(limit: int) -> ApiError:
    return ApiError(503, 50301, f"The proxy has {limit} consumers, which is its limit; retry later.")


def undeserializable(cause: str) -> ApiError:
    return ApiError(408, 40801, cause)
