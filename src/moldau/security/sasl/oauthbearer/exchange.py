"""The OAUTHBEARER exchange, both sides.

    client                          server
    n,,^Aauth=Bearer <token>^A^A
                                    empty: accepted
                                    {"status":"invalid_token"}: refused
    ^A
                                    the authentication fails

A session ends when its token expires (KIP-368).
"""

from __future__ import annotations

import logging

from moldau.base.clock import Clock
from moldau.base.log_throttle import Repeats
from moldau.base.printable import one_line
from moldau.security.principal import USER, KafkaPrincipal
from moldau.security.sasl.mechanism import OAUTHBEARER, SaslError
from moldau.security.sasl.oauthbearer.messages import (
    ACKNOWLEDGEMENT,
    ClientMessage,
    error_message,
    parse_client_message,
)
from moldau.security.sasl.oauthbearer.token import BearerToken, InvalidToken, TokenSource, TokenValidator

logger = logging.getLogger(__name__)

#: The server's error is shown up to this length.
_MAX_ERROR = 500


class OAuthServer:
    def __init__(self, validator: TokenValidator, clock: Clock, repeats: Repeats | None = None) -> None:
        """`repeats` of all exchanges limits how often a refused token is logged."""
        self._repeats = repeats or Repeats()
        self._validator = validator
        self._clock = clock
        self._token: BearerToken | None = None
        #: What the client was sent about a refused token.
        self._refusal: str | None = None

    @property
    def blocking(self) -> bool:
        return self._validator.blocking

    @property
    def complete(self) -> bool:
        return self._token is not None

    @property
    def principal(self) -> KafkaPrincipal:
        return KafkaPrincipal(USER, self._accepted().principal)

    @property
    def session_lifetime_ms(self) -> int | None:
        return self._accepted().expires_at_ms - self._clock.time_ms()

    def evaluate(self, token: bytes) -> bytes:
        if self._refusal is not None and token == ACKNOWLEDGEMENT:
            raise SaslError(self._refusal)
        if self._refusal is not None or self.complete:
            raise self._error("a message after the end of the exchange")
        try:
            message = parse_client_message(token)
        except ValueError as error:
            raise self._error(f"Invalid OAUTHBEARER client first message: {error}") from None
        return self._validate(message)

    def _validate(self, message: ClientMessage) -> bytes:
        try:
            accepted = self._validator.validate(message.token)
        except InvalidToken as error:
            shown = self._repeats.refusal("", str(error))
            if shown is not None:
                logger.info("a token of a client is refused: %s", one_line(shown))
            self._refusal = error_message(error.status, error.scope)
            return self._refusal.encode()
        if message.authorization_id and message.authorization_id != accepted.principal:
            raise SaslError(
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) "
                f"that is different from the token's principal name ({accepted.principal})"
            )
        self._token = accepted
        return b""

    def _accepted(self) -> BearerToken:
        if self._token is None:
            raise RuntimeError("the exchange is not complete")
        return self._token

    def _error(self, reason: str) -> SaslError:
        return SaslError.invalid_credentials(OAUTHBEARER, reason)


class OAuthClient:
    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._refused = False
        self.complete = False

    @property
    def blocking(self) -> bool:
        return self._source.blocking

    def first(self) -> bytes:
        token = self._source.token()
        return ClientMessage(token.value, extensions=self._source.extensions).encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        if self.complete or self._refused:
            raise SaslError("OAUTHBEARER: the server sent a challenge after the end of the exchange")
        if challenge:
            # The server names the reason again when it refuses the acknowledgement.
            logger.debug("the token is refused: %s", challenge[:_MAX_ERROR].decode("utf-8", "replace"))
            self._refused = True
            return ACKNOWLEDGEMENT
        self.complete = True
        return None
