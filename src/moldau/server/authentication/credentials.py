"""SCRAM credentials and delegation tokens, as the committed metadata has them.

A login with a token is a SCRAM login whose password is the base64 of the token's HMAC. Its SCRAM credential
is derived in the thread pool when the metadata shows the token, because that takes milliseconds; a login that
arrives earlier derives it itself. An expired token can log in until the controller removes it, as in Kafka,
but the session ends at once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from moldau.base.ids import Randomness
from moldau.base.pool import Pool
from moldau.config.broker.config import BrokerConfig
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.security.principal import parse_principal
from moldau.security.sasl.mechanism import MIN_ITERATIONS, SCRAM_TYPES, ScramCredential, TokenCredential
from moldau.security.tokens import SECRET_KEY_CONFIG, token_hmac
from moldau.server.tasks import BackgroundTasks


class MetadataCredentials:
    def __init__(
        self,
        config: BrokerConfig,
        randomness: Randomness,
        pool: Pool,
        tasks: BackgroundTasks,
    ) -> None:
        self._image = MetadataImage.empty()
        self._secret_key = config.text(SECRET_KEY_CONFIG)
        self._mechanisms = _scram_mechanisms(config)
        self._randomness = randomness
        self._pool = pool
        self._tasks = tasks
        #: Credentials of tokens by mechanism and token id.
        self._derived: dict[tuple[str, str], ScramCredential] = {}

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        record = self._image.scram.get((SCRAM_TYPES[mechanism], user))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        record = self._image.delegation_tokens.get(token_id)
        if record is None or not self._secret_key:
            return None
        credential = self._derived.get((mechanism, token_id))
        if credential is None:
            credential = self._derive(mechanism, token_id, self._salt())
            self._derived[mechanism, token_id] = credential
        return TokenCredential(parse_principal(record.owner), record.expiration_timestamp, credential)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over the users and tokens of an image, and derive the credentials of new tokens."""
        self._image = image
        if not self._secret_key or not delta.delegation_tokens.changes:
            return
        present = image.delegation_tokens
        self._derived = {key: each for key, each in self._derived.items() if key[1] in present}
        new = [
            (mechanism, token_id)
            for token_id in delta.delegation_tokens.changes
            if token_id in present
            for mechanism in self._mechanisms
            if (mechanism, token_id) not in self._derived
        ]
        if new:
            self._tasks.start(self._derive_all(new))

    async def _derive_all(self, keys: Iterable[tuple[str, str]]) -> None:
        for key in keys:
            if key not in self._derived:
                credential = await self._pool.run(self._derive, *key, self._salt())
                if key[1] in self._image.delegation_tokens:
                    self._derived.setdefault(key, credential)

    def _salt(self) -> bytes:
        from moldau.security.sasl.scram import random_salt

        return random_salt(self._randomness)

    def _derive(self, mechanism: str, token_id: str, salt: bytes) -> ScramCredential:
        from moldau.security.sasl.scram import make_credential

        password = base64.b64encode(token_hmac(self._secret_key or "", token_id)).decode("ascii")
        return make_credential(mechanism, password, MIN_ITERATIONS, salt)


def _scram_mechanisms(config: BrokerConfig) -> list[str]:
    """Return the SCRAM mechanisms that any listener has enabled."""
    enabled = {
        mechanism
        for listener, protocol in config.protocol_map.items()
        if protocol.startswith("SASL_")
        for mechanism in config.for_listener(listener, "sasl.enabled.mechanisms")
    }
    return [mechanism for mechanism in SCRAM_TYPES if mechanism in enabled]
