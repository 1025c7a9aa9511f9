"""Delegation tokens (KIP-48, KIP-900): creation, renewal, expiry, and the removal of expired tokens.

A token has an owner, whom clients with the token are; a requester, who created it (KIP-373); and renewers. It
is valid until its expiry timestamp, which renewals move up to its max timestamp.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.ids import format_uuid, random_uuid
from moldau.controller.state import ControllerState, DecisionContext
from moldau.metadata.features import DELEGATION_TOKENS_SUPPORTED
from moldau.metadata.records import MetadataRecord
from moldau.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from moldau.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from moldau.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from moldau.protocol.stored.metadata import DelegationTokenRecord, RemoveDelegationTokenRecord
from moldau.security.principal import USER, KafkaPrincipal
from moldau.security.tokens import is_expired, may_renew, token_hmac
from moldau.statemachine.decision import Decision

#: The limit on tokens that one step of the periodic task removes.
MAX_REMOVALS = 1_000
_MAX_TIMESTAMP = 2**63 - 1


def token_owner(request: CreateDelegationTokenRequest, requester: KafkaPrincipal) -> KafkaPrincipal:
    """Return the owner of a requested token: the requester, unless the request names another (KIP-373)."""
    if not request.owner_principal_name:
        return requester
    return KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)


def empty_response(
    request: CreateDelegationTokenRequest, requester: KafkaPrincipal, api_version: int
) -> CreateDelegationTokenResponse:
    """Return a response that names owner and requester only; older versions have no requester."""
    owner = token_owner(request, requester)
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if api_version >= 3:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response


def create_delegation_token(
    state: ControllerState,
    request: CreateDelegationTokenRequest,
    context: DecisionContext,
    *,
    requester: KafkaPrincipal,
) -> Decision[MetadataRecord, CreateDelegationTokenResponse]:
    response = empty_response(request, requester, context.api_version)
    try:
        secret_key = _secret_key(state)
        _check_renewers(request)
    except KafkaError as error:
        response.error_code = error.code
        return Decision([], response)
    max_timestamp = _later(context.time_ms, _max_lifetime_ms(state, request.max_lifetime_ms))
    expiry_ms = state.config.integer("delegation.token.expiry.time.ms")
    token = DelegationTokenRecord(
        owner=str(token_owner(request, requester)),
        requester=str(requester),
        renewers=[f"{each.principal_type}:{each.principal_name}" for each in request.renewers],
        issue_timestamp=context.time_ms,
        max_timestamp=max_timestamp,
        expiration_timestamp=min(max_timestamp, _later(context.time_ms, expiry_ms)),
        token_id=format_uuid(random_uuid(state.randomness)),
    )
    response.issue_timestamp_ms = token.issue_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.max_timestamp_ms = token.max_timestamp
    response.token_id = token.token_id
    response.hmac = token_hmac(secret_key, token.token_id)
    return Decision([token], response)


def renew_delegation_token(
    state: ControllerState,
    request: RenewDelegationTokenRequest,
    context: DecisionContext,
    *,
    requester: KafkaPrincipal,
) -> Decision[MetadataRecord, RenewDelegationTokenResponse]:
    token = _find(state, request.hmac)
    _check_not_expired(token, context)
    _check_may_renew(token, requester)
    period_ms = state.config.integer("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    renewed = _expiring(token, min(token.max_timestamp, _later(context.time_ms, period_ms)))
    return Decision([renewed], RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expiration_timestamp))


def expire_delegation_token(
    state: ControllerState,
    request: ExpireDelegationTokenRequest,
    context: DecisionContext,
    *,
    requester: KafkaPrincipal,
) -> Decision[MetadataRecord, ExpireDelegationTokenResponse]:
    """Remove a token, or with a period that is not negative, only change when it expires."""
    token = _find(state, request.hmac)
    _check_may_renew(token, requester)
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token.token_id)
        return Decision([removal], ExpireDelegationTokenResponse(expiry_timestamp_ms=context.time_ms))
    _check_not_expired(token, context)
    expires_at = min(token.max_timestamp, _later(context.time_ms, request.expiry_time_period_ms))
    return Decision(
        [_expiring(token, expires_at)], ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at)
    )


def remove_expired_tokens(state: ControllerState, time_ms: int) -> Decision[MetadataRecord, bool]:
    """Remove expired tokens; the response is whether more of them may be left."""
    records: list[MetadataRecord] = []
    for token in state.image.delegation_tokens.values():
        if not is_expired(token, time_ms):
            continue
        if len(records) >= MAX_REMOVALS:
            return Decision(records, True)
        records.append(RemoveDelegationTokenRecord(token_id=token.token_id))
    return Decision(records, False)


def _secret_key(state: ControllerState) -> str:
    """Return the key of this cluster's tokens; `KafkaError` if there are no tokens."""
    secret_key = state.token_secret_key
    if not secret_key:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if state.metadata_version < DELEGATION_TOKENS_SUPPORTED:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return secret_key


def _check_renewers(request: CreateDelegationTokenRequest) -> None:
    if any(renewer.principal_type != USER for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def _max_lifetime_ms(state: ControllerState, requested_ms: int) -> int:
    limit_ms = state.config.integer("delegation.token.max.lifetime.ms")
    return min(limit_ms, requested_ms) if requested_ms > 0 else limit_ms


def _find(state: ControllerState, hmac: bytes) -> DelegationTokenRecord:
    _secret_key(state)
    token = state.tokens_by_hmac.find(state.image.delegation_tokens, hmac)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_not_expired(token: DelegationTokenRecord, context: DecisionContext) -> None:
    if is_expired(token, context.time_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_may_renew(token: DelegationTokenRecord, requester: KafkaPrincipal) -> None:
    if not may_renew(token, requester):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _expiring(token: DelegationTokenRecord, expires_at: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expires_at,
        token_id=token.token_id,
    )


def _later(time_ms: int, duration_ms: int) -> int:
    return min(_MAX_TIMESTAMP, time_ms + duration_ms)
