"""Whether the transaction coordinator knows of a transaction before its first batch is written here.

Before the first batch of a transaction is appended, its coordinator is asked. Meanwhile a marker may end that
transaction, so the answer holds only for the `Guard` that was given out when the question was put: a marker
takes the guard away. Later batches need none, because the transaction is open in this log then.

While a question is open, or was answered with an error the producer will try again after, no batch behind the
lowest sequence that asked may come first.
"""

from __future__ import annotations

from moldau.protocol.records import BatchHeader


class Guard:
    """Stands for one question to the coordinator."""

    __slots__ = ()


#: For callers that have no coordinator to ask, or are the coordinator.
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
    """The questions that are open, by producer id."""

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
        """A transactional batch was written: the transaction is open now, or over.

        A marker of the epoch that asks belongs to the transaction before: its producer has begun the next
        one already.
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
