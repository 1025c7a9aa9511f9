"""What a sink raises, so that whoever started the query reads what to do."""

from __future__ import annotations


class InvalidRows(ValueError):
    """Rows that no topic can take: columns missing, or of another type."""


class SinkError(RuntimeError):
    """The sink cannot go on without a record being lost or written twice."""


class CheckpointTooOld(SinkError):
    """Topics have more of the query than its checkpoint knows."""


class TwoWrites(SinkError):
    """Two writes of one batch that cannot be told apart."""


class OtherRows(SinkError):
    """A batch that is run again is cut into tasks in another way than before."""


class RowsMissing(SinkError):
    """Spark broke off before the last row of a task."""


class TransactionLost(SinkError):
    """Somebody else has the transactional id now, or the coordinator gave the transaction up."""
