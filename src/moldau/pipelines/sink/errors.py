"""The errors of the sink; each message names the remedy."""

from __future__ import annotations


class InvalidRows(ValueError):
    """Rows that cannot be written to a topic: a column is missing or has the wrong type."""


class SinkError(RuntimeError):
    """The sink cannot continue without losing or duplicating records."""


class CheckpointTooOld(SinkError):
    """The topics contain batches of the query that its checkpoint does not know."""


class TwoWrites(SinkError):
    """Two writes of one batch that cannot be distinguished."""


class OtherRows(SinkError):
    """A replayed batch is partitioned into tasks differently than before."""


class RowsMissing(SinkError):
    """Spark stopped sending rows before the last row of a task."""


class TransactionLost(SinkError):
    """The transactional id was fenced, or the coordinator aborted the transaction."""
