"""The connections that may request delegation tokens (KIP-48)."""

from __future__ import annotations

from moldau.security.principal import ANONYMOUS
from moldau.server.dispatch.context import RequestContext


def allows_token_requests(context: RequestContext) -> bool:
    """Return whether the client has proved who it is, other than with a token.

    A broker checks this before it forwards a request; the controller knows of a forwarded one only the
    principal.
    """
    if context.principal.token_authenticated:
        return False
    if context.forwarded:
        return True
    protocol = context.listener.security_protocol
    return protocol != "PLAINTEXT" and not (protocol == "SSL" and context.principal == ANONYMOUS)
