"""Exceptions for the error codes of responses, with a message even if the broker sent none."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError

_SENTENCES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The broker had an unexpected error; see its log.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is outside the range of the partition.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "The broker does not have this topic or partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "The broker is not the leader of this partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available: is there a broker for each "
    "replica of its topic (offsets.topic.replication.factor, transaction.state.log.replication.factor)?",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The client is not authorized for this operation on the group.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group is subscribed to this topic: offsets cannot be deleted.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member, or is not empty.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactional id could not be found.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The topic name is invalid.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "The client is not authorized for this operation on the topic.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The client is not authorized for this operation on the cluster.",
    ErrorCode.UNSUPPORTED_VERSION: "The broker does not support this version of the request.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "A topic of this name already exists.",
    ErrorCode.INVALID_PARTITIONS: "The number of partitions is invalid.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "The replication factor is invalid.",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "The replica assignment is invalid.",
    ErrorCode.INVALID_CONFIG: "The configuration is invalid.",
    ErrorCode.NOT_CONTROLLER: "The node is not the active controller.",
    ErrorCode.INVALID_REQUEST: "The broker refused the request as malformed.",
    ErrorCode.POLICY_VIOLATION: "The request violates a policy of the cluster.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The transaction timeout is larger than the broker allows "
    "(transaction.max.timeout.ms).",
    ErrorCode.SECURITY_DISABLED: "Security features are disabled on the broker.",
    ErrorCode.KAFKA_STORAGE_ERROR: "The log directory of this partition is offline or has failed.",
    ErrorCode.LOG_DIR_NOT_FOUND: "The log directory is not one of the broker's.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topics cannot be deleted: delete.topic.enable is false.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The mutation quota is exceeded; retry later.",
    ErrorCode.RESOURCE_NOT_FOUND: "The resource does not exist.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The broker cannot compile this RE2 regular expression.",
    ErrorCode.PRODUCER_FENCED: "Another producer with this transactional id has taken over, or the "
    "transaction exceeded its timeout and was aborted.",
    ErrorCode.UNKNOWN_TOPIC_ID: "The broker does not have a topic with this id.",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker with this id is registered.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "The request is for the other endpoint type: broker or controller.",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "Delegation Token requests are not allowed on "
    "PLAINTEXT/1-way SSL channels and on delegation token authenticated channels.",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "The node does not support this endpoint type.",
}

_FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


class ProducerFenced(KafkaError):
    """Another producer has taken over the transactional id, or the transaction exceeded its timeout.

    All further requests of this producer fail.
    """


def error_of(error_code: int, message: str | None = None) -> KafkaError:
    """Return the exception of an error code, with the broker's message or our own."""
    try:
        code = ErrorCode(error_code)
    except ValueError:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            message or f"The broker returned the unknown error code {error_code}.",
        )
    if code in _FENCED:
        return ProducerFenced(code, message or _SENTENCES[ErrorCode.PRODUCER_FENCED])
    return KafkaError(code, message or _SENTENCES.get(code))


def check(error_code: int, message: str | None = None) -> None:
    """Raise the exception of `error_code` unless it is NONE."""
    if error_code != ErrorCode.NONE:
        raise error_of(error_code, message)


def about(what: str, error: KafkaError, sentence: str | None = None) -> KafkaError:
    """Return the same error with its subject in front and, if given, another message."""
    error.message = f"{what}: {sentence or error}"
    error.args = (error.message,)
    return error
