"""The commands of scenarios about transactions.

    level N                        the cluster's `transaction.version`, before anything else
    init P [timeout=MS]            P is a producer and its id; `B=A` is another producer of the id A
    recover P                      P asks for its next epoch after an error
    add P PARTITION ...            P adds partitions itself (the classic flow)
    send P PARTITION VALUE         P writes; with level 2 whoever leads the partition adds it
    commit P, abort P              P adopts the epoch it is told
    again commit|abort|recover P   the same request once more: the answer was lost
    epoch P N                      makes N the epoch of P's id, as if it had begun that often
    hold, deliver                  markers wait, and are written
    partly PARTITION               of the markers that wait, only this partition's is written
    late                           the first markers of all are written once more
    pass MS                        time passes, and transactions run out of theirs
    expire                         ids that are too old are forgotten
    crash                          another coordinator takes over what is stored; partitions are read again
    show ID                        what the coordinator knows
    read PARTITION                 what `read_committed` shows, and how far

`id.epoch` is what a producer is told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from moldau.base.errors import KafkaError
from moldau.base.ids import TopicPartition
from moldau.statemachine.coordinator_records import Producer
from moldau.statemachine.decision import Decision
from moldau.transactions.context import ProducerResponse, TransactionSettings
from moldau.transactions.end_txn import EndTxn
from moldau.transactions.init_producer_id import InitProducerId, check_request
from moldau.transactions.records import to_record
from tests.harness.worlds.transactions import EXPIRATION_MS, MAX_TIMEOUT_MS, TransactionWorld


class Client:
    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer = Producer(-1, -1)
        self.last_end: EndTxn | None = None
        self.recovered: Producer | None = None
        self.sequences: dict[TopicPartition, int] = {}

    def adopt(self, producer: Producer) -> None:
        if producer != self.producer:
            self.producer = producer
            self.sequences.clear()


class TransactionCommands:
    def __init__(self, folder: Path) -> None:
        self._world = TransactionWorld(folder)
        self._clients: dict[str, Client] = {}

    def run(self, line: str) -> list[str]:
        command, *arguments = line.split()
        try:
            return getattr(self, "_" + command)(*arguments) or []
        except KafkaError as error:
            return [f"{line}: {error.code.name}"]

    def _level(self, level: str) -> None:
        self._world.level = int(level)

    def _init(self, name: str, timeout: str = "timeout=60000") -> list[str]:
        name, _, transactional_id = name.partition("=")
        client = self._clients.setdefault(name, Client(transactional_id or name))
        return self._begin(name, client, int(timeout.partition("=")[2]), None)

    def _recover(self, name: str) -> list[str]:
        client = self._clients[name]
        client.recovered = client.producer
        return self._begin(name, client, 60_000, client.recovered)

    def _begin(self, name: str, client: Client, timeout_ms: int, expected: Producer | None) -> list[str]:
        request = check_request(
            InitProducerId(client.transactional_id, timeout_ms, expected),
            TransactionSettings(MAX_TIMEOUT_MS, EXPIRATION_MS, False),
        )
        return self._told(name, client, self._world.decide(lambda shard: shard.init_producer_id(request)))

    def _told(self, name: str, client: Client, answer: ProducerResponse) -> list[str]:
        if answer.error:
            return [f"{name}: {answer.error.name}"]
        if answer.producer_id >= 0:
            client.adopt(Producer(answer.producer_id, answer.producer_epoch))
            return [f"{name}: {answer.producer_id}.{answer.producer_epoch}"]
        return [f"{name}: done"]

    def _add(self, name: str, *partitions: str) -> None:
        client = self._clients[name]
        added = frozenset(_partition(each) for each in partitions)
        self._world.decide(
            lambda shard: shard.add_partitions(client.transactional_id, client.producer, added, 0)
        )

    def _send(self, name: str, partition: str, value: str) -> None:
        client, each = self._clients[name], _partition(partition)
        sequence = client.sequences.get(each, 0)
        self._world.send(
            client.transactional_id,
            client.producer,
            each,
            sequence,
            value.encode(),
            implicit=self._world.level >= 2,
        )
        client.sequences[each] = sequence + 1

    def _commit(self, name: str) -> list[str]:
        return self._end(name, committed=True)

    def _abort(self, name: str) -> list[str]:
        return self._end(name, committed=False)

    def _end(self, name: str, *, committed: bool) -> list[str]:
        client = self._clients[name]
        client.last_end = EndTxn(
            client.transactional_id, client.producer, committed, 2 if self._world.level >= 2 else 0
        )
        return self._again("", name)

    def _again(self, word: str, name: str) -> list[str]:
        client = self._clients[name]
        if word == "recover":
            return self._begin(name, client, 60_000, client.recovered)
        request = client.last_end
        assert request is not None
        if word:
            request = request._replace(committed=word == "commit")
        return self._told(name, client, self._world.decide(lambda shard: shard.end_transaction(request)))

    def _epoch(self, name: str, epoch: str) -> None:
        client = self._clients[name]
        found = self._world.shard.describe(client.transactional_id)
        aged = replace(found, producer_epoch=int(epoch))
        self._world.decide(lambda shard: Decision([to_record(aged, self._world.level)], None))
        client.adopt(Producer(found.producer_id, int(epoch)))

    def _hold(self) -> None:
        self._world.holds = True

    def _deliver(self) -> None:
        self._world.holds = False
        self._world.deliver()

    def _partly(self, partition: str) -> None:
        for markers in self._world.held:
            self._world.write_markers(markers, [_partition(partition)])

    def _late(self) -> None:
        markers = self._world.asked[0]
        self._world.write_markers(markers, sorted(markers.partitions))

    def _pass(self, milliseconds: str) -> None:
        self._world.pass_time(int(milliseconds))

    def _expire(self) -> list[str]:
        return [f"{self._world.decide(lambda shard: shard.expire())} forgotten"]

    def _crash(self) -> None:
        self._world.restart_partitions()
        self._world.take_over()

    def _show(self, transactional_id: str) -> list[str]:
        found = self._world.shard.describe(transactional_id)
        partitions = " ".join(str(each) for each in sorted(found.partitions))
        return [
            f"{found.status.title}, {found.producer_id}.{found.producer_epoch}"
            + (f", {partitions}" if partitions else "")
        ]

    def _read(self, partition: str) -> list[str]:
        each = _partition(partition)
        log = self._world.log(each)
        values = " ".join(value.decode() for value in self._world.committed(each)) or "nothing"
        is_open = "" if log.last_stable_offset == log.log_end_offset else ", more is undecided"
        return [f"{partition}: {values}{is_open}"]


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))
