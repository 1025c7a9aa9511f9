"""The filters of ListTransactions: by state, producer id, duration (KIP-994) and transactional id pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moldau.base.errors import ErrorCode, KafkaError
from moldau.base.re2_patterns import InvalidPatternError, Pattern, compile_pattern
from moldau.transactions.state import BY_TITLE, Transaction


class TransactionFilter:
    """An empty list, a negative duration and a missing pattern match every transaction."""

    def __init__(
        self,
        states: Sequence[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> None:
        self._by_state = bool(states)
        self._states = frozenset(BY_TITLE[name] for name in states if name in BY_TITLE)
        self.unknown_states = list(dict.fromkeys(name for name in states if name not in BY_TITLE))
        self._producer_ids = frozenset(producer_ids)
        self._duration_ms = duration_ms
        self._pattern = _compile(pattern) if pattern else None

    def matches(self, transaction: Transaction, now_ms: int) -> bool:
        if self._producer_ids and transaction.producer_id not in self._producer_ids:
            return False
        if self._by_state and transaction.status not in self._states:
            return False
        if self._duration_ms >= 0 and now_ms - transaction.started_ms <= self._duration_ms:
            return False
        return self._pattern is None or self._pattern.fullmatch(transaction.transactional_id) is not None


def _compile(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except InvalidPatternError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transactional id pattern `{pattern}` is not a valid regular expression: {error}.",
        ) from error
