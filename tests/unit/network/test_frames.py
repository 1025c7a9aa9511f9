"""Frames are cut at their length prefix, whatever pieces the bytes arrive in, without growing for a lie."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.network.frames import FrameBuffer, FrameTooLarge


def feed(buffer: FrameBuffer, data: bytes) -> None:
    view = buffer.writable()
    view[: len(data)] = data
    buffer.received(len(data))


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


@given(st.lists(st.binary(max_size=40_000), max_size=12), st.integers(1, 5000), st.booleans())
def test_frames_do_not_depend_on_how_bytes_are_split(payloads: list[bytes], piece: int, keep: bool) -> None:
    buffer = FrameBuffer(1_000_000)
    stream = framed(*payloads)
    taken: list[bytes] = []
    position = 0
    while position < len(stream):
        chunk = stream[position : position + min(piece, len(buffer.writable()))]
        feed(buffer, chunk)
        position += len(chunk)
        while (frame := buffer.next_frame()) is not None:
            if keep:
                buffer.keep()
            taken.append(bytes(frame))
    assert taken == payloads
    assert buffer.buffered == 0


def test_kept_frame_is_not_overwritten() -> None:
    buffer = FrameBuffer(100_000)
    feed(buffer, framed(b"first", b"second"))
    first = buffer.next_frame()
    buffer.keep()
    feed(buffer, framed(b"x" * 3000))
    assert first is not None
    assert bytes(first) == b"first"
    second = buffer.next_frame()
    assert second is not None
    assert bytes(second) == b"second"


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1])
def test_invalid_frame_size_is_refused(size: int) -> None:
    buffer = FrameBuffer(1000)
    feed(buffer, struct.pack(">i", size))
    with pytest.raises(FrameTooLarge):
        buffer.next_frame()


def test_large_announced_frame_allocates_memory_as_it_arrives() -> None:
    buffer = FrameBuffer(100 * 1024 * 1024)
    feed(buffer, struct.pack(">i", 90 * 1024 * 1024) + b"x" * 10)
    assert buffer.next_frame() is None
    assert len(buffer.writable()) < 1024 * 1024
