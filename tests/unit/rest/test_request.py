"""Requests whose query, path or body cannot be served."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.http.errors import ApiError
from moldau.rest.request import Request


def request(query: bytes = b"", body: bytes = b"", **params: str) -> Request:
    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"query_string": query, "headers": []}
    proxy: Any = SimpleNamespace(settings=SimpleNamespace(max_request_bytes=1_000_000))
    return Request(scope, receive, send, params, proxy, proxy)


def test_queries_are_bounded() -> None:
    assert request(b"&".join(b"a%d=1" % each for each in range(100))).query("a99") == "1"
    with pytest.raises(ApiError) as refused:
        request(b"&".join(b"a%d=1" % each for each in range(101))).query("a")
    assert refused.value.status == 400


@pytest.mark.parametrize("number", ["-1", "x", "1.0", "²", "٣", "1_0", " 1", "2147483648", "9" * 5000])
def test_paths_without_a_number_do_not_exist(number: str) -> None:
    assert request(partition_id="2147483647").path_number("partition_id") == 2147483647
    with pytest.raises(ApiError) as refused:
        request(partition_id=number).path_number("partition_id")
    assert refused.value.status == 404


def test_texts_without_a_form_in_utf8_are_refused() -> None:
    good = {"a": ["é", "😀"]}
    assert asyncio.run(request(body=json.dumps(good).encode()).json()) == good
    for bad in ({"\ud800": 1}, {"a": ["\udfff"]}):
        with pytest.raises(ApiError) as refused:
            asyncio.run(request(body=json.dumps(bad).encode()).json())
        assert (refused.value.status, refused.value.error_code) == (422, 422)
