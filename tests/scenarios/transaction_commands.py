"""The commands of scenarios for transactions.

    transaction_version N          set the feature level; must be the first command
    init P [timeout=MS]            start producer P with transactional id P; `B=A` has the id A
    recover P                      recover from an error: InitProducerId with id and epoch (KIP-360)
    add P PARTITION ...            add partitions (the classic flow)
    send P PARTITION VALUE         write a record; with version 2 the partition leader adds the partition
    commit P, abort P              end the transaction; P uses the epoch of the response
    retry commit|abort|recover P   repeat the request after a lost response
    epoch P N                      set the epoch of P's transactional id
    hold_markers, write_markers    hold back markers, and write them
    write_marker PARTITION         write the held markers of one partition only
    repeat_markers                 write the very first markers again
    pass MS                        let time pass; transactions may time out
    expire                         expire transactional ids
    crash                          load a new coordinator and reopen the partitions
    describe ID                    print the state of a transactional id
    read PARTITION                 print what `read_committed` shows

Responses are printed as `producer id.epoch`.
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

    def _transaction_version(self, level: str) -> None:
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
        return self._text(name, client, self._world.decide(lambda shard: shard.init_producer_id(request)))

    def _text(self, name: str, client: Client, response: ProducerResponse) -> list[str]:
        if response.error:
            return [f"{name}: {response.error.name}"]
        if response.producer_id >= 0:
            client.adopt(Producer(response.producer_id, response.producer_epoch))
            return [f"{name}: {response.producer_id}.{response.producer_epoch}"]
        return [f"{name}: ok"]

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
        return self._retry("", name)

    def _retry(self, word: str, name: str) -> list[str]:
        client = self._clients[name]
        if word == "recover":
            return self._begin(name, client, 60_000, client.recovered)
        request = client.last_end
        assert request is not None
        if word:
            request = request._replace(committed=word == "commit")
        return self._text(name, client, self._world.decide(lambda shard: shard.end_transaction(request)))

    def _epoch(self, name: str, epoch: str) -> None:
        client = self._clients[name]
        found = self._world.shard.describe(client.transactional_id)
        aged = replace(found, producer_epoch=int(epoch))
        self._world.decide(lambda shard: Decision([to_record(aged, self._world.level)], None))
        client.adopt(Producer(found.producer_id, int(epoch)))

    def _hold_markers(self) -> None:
        self._world.holds = True

    def _write_markers(self) -> None:
        self._world.holds = False
        self._world.deliver()

    def _write_marker(self, partition: str) -> None:
        for markers in self._world.held:
            self._world.write_markers(markers, [_partition(partition)])

    def _repeat_markers(self) -> None:
        markers = self._world.requested[0]
        self._world.write_markers(markers, sorted(markers.partitions))

    def _pass(self, milliseconds: str) -> None:
        self._world.pass_time(int(milliseconds))

    def _expire(self) -> list[str]:
        return [f"{self._world.decide(lambda shard: shard.expire())} expired"]

    def _crash(self) -> None:
        self._world.restart_partitions()
        self._world.take_over()

    def _describe(self, transactional_id: str) -> list[str]:
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
        is_open = "" if log.last_stable_offset == log.log_end_offset else ", transaction open"
        return [f"{partition}: {values}{is_open}"]


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))
