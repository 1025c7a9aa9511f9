"""The GSSAPI exchange, both sides (RFC 4752).

    client                     server
    AP-REQ
                               AP-REP
    empty
                               wrapped: the security layers it offers
    wrapped: the chosen layer
                               empty: the exchange is complete

Only "no security layer" is offered and chosen, as in Kafka: protection of the data is the task of TLS. The
authorization id of a client is ignored, as in Kafka. Steps may wait for the KDC, a key table or a replay
cache: they run outside the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.security.principal import USER, KafkaPrincipal
from moldau.security.sasl.kerberos.names import NoMatchingRule, ShortNames
from moldau.security.sasl.mechanism import GSSAPI, SaslError

if TYPE_CHECKING:
    from gssapi import Credentials, Name, SecurityContext

_NO_LAYER = 1
#: The layers, and the largest message with a layer: none.
_OFFER = bytes((_NO_LAYER, 0, 0, 0))


class KerberosServer:
    blocking = True
    session_lifetime_ms: int | None = None

    def __init__(self, credentials: Callable[[], Credentials], names: ShortNames) -> None:
        self._credentials = credentials
        self._names = names
        self._context: SecurityContext | None = None
        self._offered = False
        self._failed = False
        self._principal: KafkaPrincipal | None = None

    @property
    def complete(self) -> bool:
        return self._principal is not None

    @property
    def principal(self) -> KafkaPrincipal:
        if self._principal is None:
            raise RuntimeError("the exchange is not complete")
        return self._principal

    def evaluate(self, token: bytes) -> bytes:
        from gssapi.exceptions import GSSError

        if self.complete or self._failed:
            raise self._error("a message after the end of the exchange")
        self._failed = True
        try:
            answer = self._step(token)
        except GSSError as error:
            raise self._error(str(error)) from None
        except NoMatchingRule as error:
            raise self._error(str(error)) from None
        self._failed = False
        return answer

    def _step(self, token: bytes) -> bytes:
        context = self._accepted()
        if not context.complete:
            answer = context.step(token)
            # Without mutual authentication there is nothing to answer yet.
            return bytes(answer) if answer or not context.complete else self._offer(context)
        if not self._offered:
            if token:
                raise self._error("a message where none was expected")
            return self._offer(context)
        return self._finish(context, token)

    def _accepted(self) -> SecurityContext:
        if self._context is None:
            from gssapi import SecurityContext

            self._context = SecurityContext(creds=self._credentials(), usage="accept")
            # A refused ticket is an error at once, not a token for the client with the reason.
            self._context.__DEFER_STEP_ERRORS__ = False
        return self._context

    def _offer(self, context: SecurityContext) -> bytes:
        self._offered = True
        return bytes(context.wrap(_OFFER, False).message)

    def _finish(self, context: SecurityContext, token: bytes) -> bytes:
        chosen = context.unwrap(token).message
        if len(chosen) < len(_OFFER) or chosen[0] != _NO_LAYER:
            raise self._error("the client chose a security layer that was not offered")
        self._principal = KafkaPrincipal(USER, self._names.short_name(str(context.initiator_name)))
        return b""

    def _error(self, reason: str) -> SaslError:
        return SaslError.invalid_credentials(GSSAPI, reason)


class KerberosClient:
    blocking = True

    def __init__(self, credentials: Callable[[], Credentials], target: Callable[[], Name]) -> None:
        self._credentials = credentials
        self._target = target
        self._context: SecurityContext | None = None
        self.complete = False

    def first(self) -> bytes:
        from gssapi import MechType, RequirementFlag, SecurityContext
        from gssapi.exceptions import GSSError

        try:
            self._context = SecurityContext(
                name=self._target(),
                creds=self._credentials(),
                usage="initiate",
                mech=MechType.kerberos,
                flags=[
                    RequirementFlag.mutual_authentication,
                    RequirementFlag.out_of_sequence_detection,
                    RequirementFlag.integrity,
                ],
            )
            return bytes(self._context.step() or b"")
        except GSSError as error:
            raise SaslError(f"GSSAPI: {error}") from None

    def evaluate(self, challenge: bytes) -> bytes | None:
        from gssapi.exceptions import GSSError

        context = self._context
        if context is None or self.complete:
            raise SaslError("GSSAPI: the server sent a challenge outside of the exchange")
        try:
            if not context.complete:
                return bytes(context.step(challenge) or b"")
            offered = context.unwrap(challenge).message
            if not offered or not offered[0] & _NO_LAYER:
                raise SaslError("GSSAPI: the server demands a security layer, which Kafka does not have")
            answer = bytes(context.wrap(_OFFER, False).message)
        except GSSError as error:
            raise SaslError(f"GSSAPI: {error}") from None
        self.complete = True
        return answer
