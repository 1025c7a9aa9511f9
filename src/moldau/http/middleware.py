"""Middleware around a service: CORS, authentication, errors.

An application finds the principal in `scope["moldau.principal"]` and the credentials in
`scope["moldau.credentials"]`, and may raise `ApiError`. Any other exception is a bug: it is logged, and the
client receives status 500 without its text. A request that is cancelled because the service stops is answered
with status 503.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from moldau.base.json_log import event
from moldau.http.asgi import CREDENTIALS, PRINCIPAL, Application, Receive, Scope, Send, send_response
from moldau.http.authentication.authenticator import Authenticator
from moldau.http.authentication.credentials import Credentials, parse_authorization
from moldau.http.cors import Cors
from moldau.http.errors import ApiError, send_error
from moldau.http.requests import ClientDisconnected
from moldau.security.principal import ANONYMOUS

logger = logging.getLogger(__name__)

_INTERNAL: Final = "Internal Server Error"
_STOPPING: Final = "The service is shutting down; send the request to another instance, or retry later."


class ServiceMiddleware:
    """An ASGI application around the application of a service."""

    def __init__(
        self,
        application: Application,
        authenticator: Authenticator | None = None,
        cors: Cors | None = None,
        is_signed: Callable[[Scope], bool] | None = None,
    ) -> None:
        """`is_signed` tells which requests the application authenticates itself, by a signature."""
        self._application = application
        self._is_signed = is_signed
        self._authenticator = authenticator
        self._cors = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._cors is not None and (origin := self._cors.allowed_origin(scope)) is not None:
            answer = self._cors.preflight(scope, origin)
            if answer is not None:
                await send_response(send, 200, content_type=None, headers=answer)
                return
            send = self._cors.adding(send, origin)
        try:
            await self._admit(scope)
            await self._application(scope, receive, send)
        except ClientDisconnected:
            return
        except ApiError as error:
            await send_error(send, error)
        except asyncio.CancelledError:
            # The response may have begun; then it ends here.
            with contextlib.suppress(RuntimeError):
                await send_error(send, ApiError(503, 503, _STOPPING))
        except Exception:
            logger.exception(
                "%s %s failed",
                scope["method"],
                scope["path"],
                extra=event("http.failed", method=scope["method"], path=scope["path"]),
            )
            await send_error(send, ApiError(500, 500, _INTERNAL))

    async def _admit(self, scope: Scope) -> None:
        """Set the principal and the credentials of a request; `ApiError` if it is not authenticated."""
        scope[CREDENTIALS] = credentials = _credentials(scope)
        scope.setdefault(PRINCIPAL, ANONYMOUS)
        if self._authenticator is not None and not (self._is_signed and self._is_signed(scope)):
            principal = await self._authenticator.authenticate(scope["path"], credentials)
            if principal is not None:
                scope[PRINCIPAL] = principal


def _credentials(scope: Scope) -> Credentials | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return parse_authorization(value)
    return None
