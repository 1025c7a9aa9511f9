"""The broker's settings that the transaction coordinator follows."""

from __future__ import annotations

from typing import NamedTuple

from moldau.config.broker.config import BrokerConfig


class TransactionSettings(NamedTuple):
    max_timeout_ms: int
    id_expiration_ms: int
    two_phase_commit: bool

    @classmethod
    def from_config(cls, config: BrokerConfig) -> TransactionSettings:
        return cls(
            max_timeout_ms=config["transaction.max.timeout.ms"],
            id_expiration_ms=config["transactional.id.expiration.ms"],
            two_phase_commit=config["transaction.two.phase.commit.enable"],
        )
