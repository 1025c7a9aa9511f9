"""DescribeDelegationToken (key 41), versions 1 to 3 (KIP-48): the tokens that a client may see.

- 2: flexible
- 3: the requester of a token (KIP-373)

Lists the tokens that belong to the client as owner, requester or renewer, those with DESCRIBE on
DELEGATION_TOKEN, and those of owners with DESCRIBE_TOKENS on USER.
"""

from __future__ import annotations

from moldau.base.errors import ErrorCode
from moldau.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from moldau.protocol.stored.metadata import DelegationTokenRecord
from moldau.security.acl.permissions import DESCRIBE_TOKEN, DESCRIBE_USER_TOKENS
from moldau.security.principal import KafkaPrincipal, parse_principal
from moldau.security.tokens import SECRET_KEY_CONFIG, owner_or_renewer, token_hmac
from moldau.server.authentication.tokens import allows_token_requests
from moldau.server.dispatch.context import RequestContext
from moldau.server.publisher import MetadataPublisher
from moldau.server.settings import NodeSettings


def handle(
    metadata: MetadataPublisher,
    settings: NodeSettings,
    context: RequestContext,
    request: DescribeDelegationTokenRequest,
) -> DescribeDelegationTokenResponse:
    if not allows_token_requests(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    secret_key = settings.config.text(SECRET_KEY_CONFIG)
    if not secret_key:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.owners]
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, secret_key, context.api_version)
            for token in metadata.image.delegation_tokens.values()
            if _is_requested(token, owners) and _may_describe(context, token)
        ]
    )


def _is_requested(token: DelegationTokenRecord, owners: list[KafkaPrincipal] | None) -> bool:
    return owners is None or any(owner_or_renewer(token, owner) for owner in owners)


def _may_describe(context: RequestContext, token: DelegationTokenRecord) -> bool:
    return (
        owner_or_renewer(token, context.principal)
        or context.allows(DESCRIBE_TOKEN, token.token_id)
        or context.allows(DESCRIBE_USER_TOKENS, token.owner)
    )


def _described(token: DelegationTokenRecord, secret_key: str, version: int) -> DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    described = DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in map(parse_principal, token.renewers)
        ],
    )
    if version >= 3:
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described
