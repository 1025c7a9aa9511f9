"""Media types of v2 requests: which one is chosen, which are refused."""

from __future__ import annotations

import pytest

from moldau.http.errors import ApiError
from moldau.rest.v2.media import V2, accepted, check_content_type

BINARY, JSON = "application/vnd.kafka.binary.v2+json", "application/vnd.kafka.json.v2+json"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, BINARY),
        ("*/*", BINARY),
        (JSON, JSON),
        (f"text/html, {JSON};q=0.5, {V2};q=0.9", V2),
        (f"{JSON.upper()}", JSON),
        (f"{JSON};q=0, */*;q=0.1", BINARY),
    ],
)
def test_chosen_type(accept: str | None, chosen: str) -> None:
    headers = [] if accept is None else [(b"accept", accept.encode())]
    assert accepted({"headers": headers}, (BINARY, V2, JSON)) == chosen


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", f"{JSON};q=x", ""])
def test_unacceptable(accept: str) -> None:
    with pytest.raises(ApiError) as refused:
        accepted({"headers": [(b"accept", accept.encode())]}, (BINARY, JSON))
    assert refused.value.status == 406


def test_content_type_with_parameters() -> None:
    scope = {"headers": [(b"content-type", f"{JSON}; charset=utf-8".encode())]}
    assert check_content_type(scope, (JSON,)) == JSON
    with pytest.raises(ApiError) as refused:
        check_content_type(scope, (BINARY,))
    assert refused.value.status == 415
