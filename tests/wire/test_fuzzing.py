"""Decoders and invalid input: any bytes give a message or a `DecodeError`, in bounded memory and time."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.protocol.headers import decode_request_header, decode_response_header
from moldau.protocol.schema import DecodeError, Message, decode, decode_prefix, encode_bytes
from tests.wire.catalog import every_version
from tests.wire.samples import random_message

CASES = every_version()
#: The first and the last version of each message.
ENDS = [case for case in CASES if case[1] in case[0].VERSIONS]
NAMES = [f"{cls.__name__}-v{version}" for cls, version in CASES]
#: Invalid length prefixes: huge, negative, endless, one too many.
LIES = [
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\xfe",
    b"\x80",
]
any_case = st.sampled_from(CASES)
quick = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))


def survives(cls: type[Message], version: int, data: bytes | memoryview) -> bool:
    """Return whether the bytes are a message; an exception other than `DecodeError` fails the test."""
    try:
        decode(cls, data, version)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize(("cls", "version"), CASES, ids=NAMES)
def test_truncated_message_is_a_decode_error(cls: type[Message], version: int) -> None:
    rng = random.Random(f"{cls.__name__} {version}")
    data = encode_bytes(random_message(cls, version, rng), version)
    cuts = range(len(data)) if len(data) < 300 else sorted(rng.sample(range(len(data)), 300))
    for cut in cuts:
        assert not survives(cls, version, data[:cut])
        assert not survives(cls, version, memoryview(data)[:cut])
    assert not survives(cls, version, data + b"\0"), "bytes left over"


@pytest.mark.parametrize(("cls", "version"), CASES, ids=NAMES)
def test_wrong_lengths_raise_only_decode_errors(cls: type[Message], version: int) -> None:
    rng = random.Random(f"{cls.__name__} {version}")
    data = encode_bytes(random_message(cls, version, rng), version)
    for _ in range(60):
        at = rng.randrange(len(data) + 1)
        lie = rng.choice(LIES)
        survives(cls, version, data[:at] + lie + data[at + len(lie) :])
        survives(cls, version, data[:at] + lie)


@quick
@given(any_case, st.binary(max_size=300))
def test_random_bytes_raise_only_decode_errors(case: tuple[type[Message], int], data: bytes) -> None:
    survives(*case, data)


@quick
@given(any_case, st.randoms(use_true_random=False), st.integers(1, 8))
def test_flipped_bytes_raise_only_decode_errors(
    case: tuple[type[Message], int], rng: random.Random, flips: int
) -> None:
    cls, version = case
    data = bytearray(encode_bytes(random_message(cls, version, random.Random(rng.random())), version))
    for _ in range(min(flips, len(data))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if survives(cls, version, bytes(data)):
        written = encode_bytes(decode(cls, bytes(data), version), version)
        assert encode_bytes(decode(cls, written, version), version) == written


@quick
@given(st.binary(max_size=60))
def test_random_headers_raise_only_decode_errors(data: bytes) -> None:
    for read in (decode_request_header, lambda frame: decode_response_header(3, 12, frame)):
        try:
            _, offset = read(data)
        except DecodeError:
            continue
        assert 0 <= offset <= len(data)


@pytest.mark.parametrize("filling", [0, 1, 2, 3, 0x7F, 0x80, 0xFF])
def test_memory_and_time_are_bounded(filling: int) -> None:
    """Many tiny elements or one huge length: memory and time stay proportional to the input."""
    data = bytes([filling]) * 20_000
    for cls, version in ENDS:
        survives(cls, version, b"")  # Compile the codec before measuring.
        tracemalloc.start()
        started = time.process_time()
        for prefix in (
            b"",
            b"\x7f\xff\xff\xff",
            b"\xff\xff\xff\xff\x0f",
            b"\xd1\x86\x03",
            b"\x00\x00\xc3\x50",
        ):
            survives(cls, version, prefix + data)
        elapsed = time.process_time() - started
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 200 * len(data), f"{cls.__name__} v{version} took {peak} bytes"
        assert elapsed < 5, f"{cls.__name__} v{version} took {elapsed} s of CPU time"


@pytest.mark.parametrize(("cls", "version"), CASES, ids=NAMES)
def test_decode_prefix_returns_the_end_of_the_message(cls: type[Message], version: int) -> None:
    data = encode_bytes(random_message(cls, version, random.Random(version)), version)
    message, end = decode_prefix(cls, b"head" + data + b"rest", version, 4)
    assert end == 4 + len(data)
    assert decode(cls, data, version) == message


def test_unknown_versions_are_refused() -> None:
    for cls in {cls for cls, _ in CASES}:
        for version in (-1, cls.VERSIONS.first - 1, cls.VERSIONS.last + 1):
            with pytest.raises(DecodeError):
                decode(cls, b"", version)
