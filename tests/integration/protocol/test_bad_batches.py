"""Produce with invalid batches: checksums, lengths, counts, formats, sequences, compression bombs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.harness.nodes.process import ON_LINUX, anonymous_memory
from tests.harness.wire import batches
from tests.harness.wire.batches import batch, old_message, record
from tests.harness.wire.requests import assert_serves, create_and_wait, fetch, produce
from tests.integration.conftest import StartNode

CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
INVALID_TIMESTAMP = 32
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87
UNKNOWN_SERVER_ERROR = -1

MEGABYTE = 1_000_000


@pytest.fixture(autouse=True)
def others_are_served(bootstrap: str, topic: str) -> Iterator[None]:
    create_and_wait(bootstrap, topic)
    yield
    assert_serves(bootstrap, topic)


def error_of(bootstrap: str, topic: str, records: bytes, **options: int) -> int:
    """Return the error code; a refused batch must leave nothing in the log."""
    before = fetch(bootstrap, topic).high_watermark
    answer = produce(bootstrap, topic, records, **options)
    assert answer.base_offset == -1
    assert fetch(bootstrap, topic).high_watermark == before
    return int(answer.error_code)


def test_a_wrong_checksum_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(crc=1)) == CORRUPT_MESSAGE


def test_every_flipped_bit_is_refused(bootstrap: str, topic: str) -> None:
    good = batch([(b"key", b"value")])
    for position in range(21, len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x10
        assert error_of(bootstrap, topic, bytes(bad)) != 0, f"byte {position}"


@pytest.mark.parametrize("length", [0, 10, -5])
def test_a_batch_length_below_the_header_size_is_refused(bootstrap: str, topic: str, length: int) -> None:
    assert error_of(bootstrap, topic, batch(length=length)) == CORRUPT_MESSAGE


def test_a_batch_length_one_byte_short_is_refused(bootstrap: str, topic: str) -> None:
    good = batch()
    assert error_of(bootstrap, topic, batch(length=len(good) - 13)) == CORRUPT_MESSAGE


@pytest.mark.parametrize("more", [1, 100, 1_000_000])
def test_a_batch_length_beyond_the_request_is_refused(bootstrap: str, topic: str, more: int) -> None:
    good = batch()
    assert error_of(bootstrap, topic, batch(length=len(good) - 12 + more)) in (
        INVALID_RECORD,
        CORRUPT_MESSAGE,
    )


@pytest.mark.parametrize(
    ("count", "last_offset_delta"),
    [(5, 0), (0, -1), (0, 0), (-3, -4), (1, 5), (2**31 - 1, 0), (1, 2**31 - 1)],
)
def test_a_record_count_that_contradicts_the_last_offset_delta_is_refused(
    bootstrap: str, topic: str, count: int, last_offset_delta: int
) -> None:
    lying = batch(count=count, last_offset_delta=last_offset_delta)
    assert error_of(bootstrap, topic, lying) == INVALID_RECORD


@pytest.mark.parametrize("config", [{"cleanup.policy": "compact"}, {"compression.type": "zstd"}], ids=str)
@pytest.mark.parametrize(("count", "real"), [(5, 1), (1, 2), (2**31 - 1, 1)])
def test_a_record_count_that_contradicts_the_payload_is_refused_where_records_are_read(
    bootstrap: str, topic: str, config: dict[str, str], count: int, real: int
) -> None:
    name = f"{topic}-parsed"
    create_and_wait(bootstrap, name, config=config)
    lying = batch([(b"k", b"v")] * real, count=count, last_offset_delta=count - 1)
    assert error_of(bootstrap, name, lying) == INVALID_RECORD


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("cleanup_policy", ["compact", "delete"])
def test_a_garbage_payload_is_refused_where_records_are_read(
    bootstrap: str, topic: str, cleanup_policy: str, codec: int
) -> None:
    name = f"{topic}-parsed"
    # A batch with the topic's codec is stored unchanged; any other is recompressed.
    own_codec = "gzip" if codec != batches.GZIP else "lz4"
    config = {"cleanup.policy": cleanup_policy, "compression.type": own_codec}
    create_and_wait(bootstrap, name, config=config)
    for seed in range(5):
        garbage = batch(attributes=codec, payload=random.Random(seed).randbytes(200))
        assert error_of(bootstrap, name, garbage) in (INVALID_RECORD, CORRUPT_MESSAGE, UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [3, 7, 12])
def test_message_formats_0_and_1_are_refused(bootstrap: str, topic: str, magic: int, version: int) -> None:
    assert error_of(bootstrap, topic, old_message(magic), version=version) == INVALID_RECORD


def test_an_unknown_magic_byte_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(magic=3)) == CORRUPT_MESSAGE


def test_a_second_batch_for_a_partition_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch() + batch()) == INVALID_RECORD
    assert error_of(bootstrap, topic, b"") == INVALID_RECORD
    assert error_of(bootstrap, topic, batch()[:40]) == INVALID_RECORD


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_compression_codec_is_refused(bootstrap: str, topic: str, codec: int) -> None:
    refused = error_of(bootstrap, topic, batch(attributes=codec))
    assert refused in (UNKNOWN_SERVER_ERROR, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD, CORRUPT_MESSAGE)


def test_zstd_needs_produce_version_7(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(codec=batches.ZSTD), version=3) == UNSUPPORTED_COMPRESSION_TYPE


def test_control_batches_of_clients_are_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(attributes=0x20)) == INVALID_RECORD


def test_a_transactional_batch_outside_a_transaction_is_refused(bootstrap: str, topic: str) -> None:
    stray = batch(attributes=0x10, producer_id=9_000_000, producer_epoch=0, sequence=0)
    assert error_of(bootstrap, topic, stray) == TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert produce(bootstrap, topic, batch()).error_code == 0
    given = fetch(bootstrap, topic)
    assert given.last_stable_offset == given.high_watermark == 1, "the last stable offset is not held back"


def test_a_base_offset_other_than_zero_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(base_offset=500)) == INVALID_RECORD


def test_a_timestamp_out_of_range_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(timestamp=2**62)) == INVALID_TIMESTAMP


def test_keyless_records_of_a_compacted_topic_are_listed_as_record_errors(bootstrap: str, topic: str) -> None:
    name = f"{topic}-compacted"
    create_and_wait(bootstrap, name, config={"cleanup.policy": "compact"})
    answer = produce(bootstrap, name, batch([(b"k", b"v"), (None, b"v"), (b"k", None), (None, b"x")]))
    assert answer.error_code == INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert "key" in answer.record_errors[0].batch_index_error_message
    assert fetch(bootstrap, name).high_watermark == 0


def test_a_batch_above_max_message_bytes_is_refused(bootstrap: str, topic: str) -> None:
    name = f"{topic}-small"
    create_and_wait(bootstrap, name, config={"max.message.bytes": "1000"})
    assert error_of(bootstrap, name, batch([(b"k", b"x" * 1000)])) == MESSAGE_TOO_LARGE
    assert produce(bootstrap, name, batch([(b"k", b"x" * 800)])).error_code == 0


def test_sequence_numbers_of_an_idempotent_producer_are_checked(bootstrap: str, topic: str) -> None:
    def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
        sent = batch(producer_id=7_000_000, producer_epoch=epoch, sequence=sequence)
        answer = produce(bootstrap, topic, sent)
        return answer.error_code, answer.base_offset

    assert [send(n) for n in range(7)] == [(0, n) for n in range(7)]
    assert send(6) == (0, 6), "a batch sent twice is stored once and answered with its offset"
    assert send(2) == (0, 2), "the fifth last is recognised, too"
    assert send(1)[0] in (OUT_OF_ORDER_SEQUENCE_NUMBER, 46), "older duplicates are not recognised"
    assert send(9)[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(0, epoch=1) == (0, 7), "a new epoch starts at sequence 0"
    assert send(7)[0] == INVALID_PRODUCER_EPOCH
    assert fetch(bootstrap, topic).high_watermark == 8


def test_a_producer_id_without_a_sequence_is_refused(bootstrap: str, topic: str) -> None:
    assert error_of(bootstrap, topic, batch(producer_id=8_000_000, producer_epoch=0)) == INVALID_RECORD


@pytest.mark.skipif(not ON_LINUX, reason="the memory of a process is read from Linux's /proc")
@pytest.mark.parametrize("config", [{"cleanup.policy": "compact"}, {"compression.type": "lz4"}], ids=str)
@pytest.mark.parametrize("codec", [batches.GZIP, batches.ZSTD])
@pytest.mark.parametrize("honest", [True, False])
def test_compression_bombs_are_refused(
    start_node: StartNode, on_moldau: bool, topic: str, config: dict[str, str], codec: int, honest: bool
) -> None:
    if honest and not on_moldau:
        pytest.skip("Apache Kafka takes a record that is really that large, if its heap can hold it")
    node = start_node()
    name = f"{topic}-bombed"
    create_and_wait(node.bootstrap_servers, name, config=config)
    zeros = bytes(400 * MEGABYTE)
    bomb = batch(codec=codec, payload=record(b"k", zeros) if honest else zeros)
    assert len(bomb) < MEGABYTE
    assert produce(node.bootstrap_servers, name, batch()).error_code == 0
    before = anonymous_memory(node.pid)
    refused = error_of(node.bootstrap_servers, name, bomb)
    assert refused in (INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE)
    grown = anonymous_memory(node.pid) - before
    assert grown < 200 * MEGABYTE, f"{grown / MEGABYTE:.0f} MB more"
    assert_serves(node.bootstrap_servers, name)
