"""Error codes of responses as exceptions with a sentence, also where the broker sent none."""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError

_SENTENCES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "The broker met an unexpected error; its log says more.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is outside of what the partition holds.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "The broker does not have this topic or partition.",
    ErrorCode.LEADER_NOT_AVAILABLE: "The partition has no leader at the moment.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "The broker asked is not the leader of this partition.",
    ErrorCode.REQUEST_TIMED_OUT: "The request was not done in time.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not there yet: is there a broker for each "
    "replica of its topic (offsets.topic.replication.factor, transaction.state.log.replication.factor)?",
    ErrorCode.INVALID_GROUP_ID: "The name cannot be that of a group.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "This client may not do that with the group.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group reads this topic: its offsets cannot be deleted.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has no such member, or has members where none may be.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactional id could not be found.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "The name cannot be that of a topic.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "This client may not do that with the topic.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "This client may not do that in the cluster.",
    ErrorCode.UNSUPPORTED_VERSION: "The broker does not speak this version of the request.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "A topic of this name exists already.",
    ErrorCode.INVALID_PARTITIONS: "The number of partitions is not possible.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "The replication factor is not possible.",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "The replica assignment is not possible.",
    ErrorCode.INVALID_CONFIG: "The configuration is not valid.",
    ErrorCode.NOT_CONTROLLER: "The node asked is not the controller.",
    ErrorCode.INVALID_REQUEST: "The broker refused the request as malformed.",
    ErrorCode.POLICY_VIOLATION: "The request is against a policy of the cluster.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "The timeout of transactions is larger than the broker allows "
    "(transaction.max.timeout.ms).",
    ErrorCode.SECURITY_DISABLED: "Security features are off on the broker.",
    ErrorCode.KAFKA_STORAGE_ERROR: "The broker has trouble with the disk of this partition.",
    ErrorCode.LOG_DIR_NOT_FOUND: "The log directory is not one of the broker's.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Topics cannot be deleted: delete.topic.enable is false.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "The quota of changes is used up; try again later.",
    ErrorCode.RESOURCE_NOT_FOUND: "There is no such resource.",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "The broker, which speaks RE2, does not understand this.",
    ErrorCode.PRODUCER_FENCED: "Another producer with this transactional id has taken over, or the "
    "transaction took longer than its timeout and was ended.",
    ErrorCode.UNKNOWN_TOPIC_ID: "The broker does not have a topic of this id.",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "No broker of this id is registered.",
    ErrorCode.MISMATCHED_ENDPOINT_TYPE: "This is not for controllers, or only for them.",
    ErrorCode.UNSUPPORTED_ENDPOINT_TYPE: "The node does not have endpoints of this kind.",
}

_FENCED = {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED}


class ProducerFenced(KafkaError):
    """Another producer has taken over the transactional id, or the transaction was ended for being too slow.

    Nothing that this producer sends counts any more.
    """


def error_of(error_code: int, message: str | None = None) -> KafkaError:
    """The exception of an error code, with the broker's message or our own sentence."""
    try:
        code = ErrorCode(error_code)
    except ValueError:
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, message or f"The broker answered with error {error_code}."
        )
    if code in _FENCED:
        return ProducerFenced(code, message or _SENTENCES[ErrorCode.PRODUCER_FENCED])
    return KafkaError(code, message or _SENTENCES.get(code))


def check(error_code: int, message: str | None = None) -> None:
    """Raise what `error_code` stands for, unless it is 0."""
    if error_code != ErrorCode.NONE:
        raise error_of(error_code, message)


def about(what: str, error: KafkaError, sentence: str | None = None) -> KafkaError:
    """The same error, saying what it is about and, if given, in another sentence."""
    error.message = f"{what}: {sentence or error}"
    error.args = (error.message,)
    return error
