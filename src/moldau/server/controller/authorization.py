"""Authorization of requests that the active controller decides.

A broker forwards such a request without a check. The node that decides it authorises it first, for the
principal and the address of the client, so that the ACLs of the active controller apply. An authorization
takes the items that the client may not change out of the request, and adds their errors to the response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from moldau.protocol.schema import Message
from moldau.security.acl.permissions import Permission
from moldau.server.dispatch.context import RequestContext

Q = TypeVar("Q", bound=Message)
R = TypeVar("R")


class Authorized(NamedTuple, Generic[Q, R]):
    """The authorised part of a request, and the function that completes its response."""

    request: Q
    complete: Callable[[R], R]


#: Raises an error that refuses the whole request.
Authorize = Callable[[RequestContext, Q], Authorized[Q, R]]


def requires(permission: Permission) -> Authorize[Q, R]:
    """Return an authorization that refuses the whole request without a permission for the cluster."""

    def authorize(context: RequestContext, request: Q) -> Authorized[Q, R]:
        context.require(permission)
        return Authorized(request, unchanged)

    return authorize


def unchanged(response: R) -> R:
    return response
