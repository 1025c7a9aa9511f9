"""Transaction verification (KIP-890): a transaction must be known to its coordinator before its first batch.

The broker asks the coordinator before it appends the first batch of a transaction. Meanwhile a marker may end
that transaction, so the answer is valid only for the `Guard` created with the request: a marker invalidates
the guard. Later batches need no guard, because the transaction is then open in this log.

While a verification is in progress, or after it failed with a retriable error, a batch with a higher sequence
than the lowest one being verified is refused.
"""

from __future__ import annotations

from moldau.protocol.records import BatchHeader


class Guard:
    """Identifies one verification."""

    __slots__ = ()


#: For appends that need no verification, such as those of the coordinator.
NOT_REQUIRED = Guard()


class Verification:
    __slots__ = ("epoch", "epoch_per_transaction", "guard", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, epoch_per_transaction: bool, now_ms: int) -> None:
        self.guard = Guard()
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.epoch_per_transaction = epoch_per_transaction
        self.since_ms = now_ms

    def asked(self, epoch: int, sequence: int) -> None:
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class Verifications:
    """The verifications in progress, by producer id."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[int, Verification] = {}

    def begin(
        self, producer_id: int, epoch: int, sequence: int, *, epoch_per_transaction: bool, now_ms: int
    ) -> Guard:
        found = self._open.get(producer_id)
        if found is None:
            found = self._open[producer_id] = Verification(epoch, sequence, epoch_per_transaction, now_ms)
        found.asked(epoch, sequence)
        return found.guard

    def get(self, producer_id: int) -> Verification | None:
        return self._open.get(producer_id)

    def wrote(self, header: BatchHeader) -> None:
        """End the verification after a transactional batch: the transaction is open now, or complete.

        A marker with the epoch being verified belongs to the previous transaction and changes nothing.
        """
        found = self._open.get(header.producer_id)
        if found is None:
            return
        if header.is_control and found.epoch_per_transaction and header.producer_epoch == found.epoch:
            return
        del self._open[header.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        for producer_id, found in list(self._open.items()):
            if now_ms - found.since_ms >= expiration_ms:
                del self._open[producer_id]
