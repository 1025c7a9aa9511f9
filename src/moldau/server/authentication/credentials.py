"""SCRAM credentials and delegation tokens, as the applied metadata has them."""

from __future__ import annotations

from moldau.security.sasl.mechanism import ScramCredential, TokenCredential
from moldau.server.publisher import MetadataPublisher

#: The codes of the mechanisms in records and requests (KIP-554).
SCRAM_CODES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


class MetadataCredentials:
    def __init__(self, metadata: MetadataPublisher) -> None:
        self._metadata = metadata

    def scram(self, mechanism: str, user: str) -> ScramCredential | None:
        record = self._metadata.image.scram.get((SCRAM_CODES[mechanism], user))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        return None
