"""SCRAM credentials of users: AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554, KIP-900).

A request must not contain two alterations of one user, also not of two mechanisms, as in Kafka: such a user
is answered with DUPLICATE_RESOURCE and not changed. All other users of the request are changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from moldau.base.errors import ErrorCode, KafkaError
from moldau.controller.errors import check_record_count
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.features import SCRAM_SUPPORTED
from moldau.metadata.image import MetadataImage
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages import describe_user_scram_credentials as describe
from moldau.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from moldau.protocol.stored.metadata import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from moldau.security.sasl.mechanism import MAX_ITERATIONS, MIN_ITERATIONS, SCRAM_TYPES
from moldau.statemachine.decision import Decision

_MECHANISMS = {number: name for name, number in SCRAM_TYPES.items()}

A = TypeVar("A", ScramCredentialDeletion, ScramCredentialUpsertion)


def alter_user_scram_credentials(
    state: ControllerState, request: AlterUserScramCredentialsRequest, context: DecisionContext
) -> Decision[MetadataRecord, AlterUserScramCredentialsResponse]:
    check_record_count(len(request.deletions) + len(request.upsertions))
    records: dict[str, MetadataRecord] = {}
    errors: dict[str, KafkaError] = {}
    _alter(state, request.deletions, records, errors, lambda deletion: _deletion(state, deletion))
    _alter(state, request.upsertions, records, errors, _upsertion)
    results = [AlterUserScramCredentialsResult(user=user, error_message=None) for user in records]
    results += [
        AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)
        for user, error in errors.items()
    ]
    return Decision(list(records.values()), AlterUserScramCredentialsResponse(results=results))


def _alter(
    state: ControllerState,
    alterations: Iterable[A],
    records: dict[str, MetadataRecord],
    errors: dict[str, KafkaError],
    record_of: Callable[[A], MetadataRecord],
) -> None:
    """Add the record or the error of each alteration; the first error of a user is kept."""
    for alteration in alterations:
        user = alteration.name
        if user in errors:
            continue
        try:
            _check(state, alteration, altered=records.pop(user, None) is not None)
            records[user] = record_of(alteration)
        except KafkaError as error:
            errors[user] = error


def _check(
    state: ControllerState, alteration: ScramCredentialDeletion | ScramCredentialUpsertion, *, altered: bool
) -> None:
    if altered:
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
        )
    if state.metadata_version < SCRAM_SUPPORTED:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not alteration.name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if alteration.mechanism not in _MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _deletion(state: ControllerState, deletion: ScramCredentialDeletion) -> MetadataRecord:
    if (deletion.mechanism, deletion.name) not in state.image.scram:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism)


def _upsertion(upsertion: ScramCredentialUpsertion) -> MetadataRecord:
    from moldau.security.sasl.scram import credential_of

    if upsertion.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    mechanism = _MECHANISMS[upsertion.mechanism]
    if not upsertion.salted_password:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    credential = credential_of(
        mechanism, bytes(upsertion.salted_password), upsertion.iterations, bytes(upsertion.salt)
    )
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=upsertion.mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def describe_user_scram_credentials(
    image: MetadataImage, request: describe.DescribeUserScramCredentialsRequest
) -> describe.DescribeUserScramCredentialsResponse:
    """Return mechanisms and iterations of the named users, or of all; never salts or keys."""
    times = Counter(user.name for user in request.users or ())
    users = times or dict.fromkeys(user for _, user in image.scram)
    return describe.DescribeUserScramCredentialsResponse(
        results=[_described(image, user, times[user] > 1) for user in users]
    )


def _described(
    image: MetadataImage, user: str, repeated: bool
) -> describe.DescribeUserScramCredentialsResult:
    result = describe.DescribeUserScramCredentialsResult(user=user)
    if repeated:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
        return result
    stored = [image.scram[mechanism, user] for mechanism in _MECHANISMS if (mechanism, user) in image.scram]
    result.credential_infos = [
        describe.CredentialInfo(mechanism=each.mechanism, iterations=each.iterations) for each in stored
    ]
    if not stored:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {user}"
    return result
