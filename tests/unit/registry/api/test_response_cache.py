from __future__ import annotations

from moldau.registry.api.response_cache import RequestKey, Response, ResponseCache

RESPONSE = Response(200, b"[]", False)


def key(path: bytes, query: bytes = b"") -> RequestKey:
    return ("GET", path, query, b"", None)


def test_responses_of_another_generation_are_dropped() -> None:
    cache = ResponseCache()
    assert cache.get(key(b"/subjects"), 1) is None
    cache.put(key(b"/subjects"), 1, RESPONSE)
    assert cache.get(key(b"/subjects"), 1) == RESPONSE
    assert cache.get(key(b"/subjects"), 2) is None
    cache.put(key(b"/subjects"), 1, RESPONSE)
    assert cache.get(key(b"/subjects"), 2) is None


def test_keys_and_responses_are_bounded_in_bytes() -> None:
    cache = ResponseCache(most_bytes=50_000)
    assert cache.get(key(b"/"), 1) is None
    for number in range(1000):
        cache.put(key(b"/subjects", b"subjectPrefix=%05d" % number + b"x" * 10_000), 1, RESPONSE)
        assert 10_000 < cache.size <= 50_000
    last = key(b"/subjects", b"subjectPrefix=00999" + b"x" * 10_000)
    assert cache.get(last, 1) == RESPONSE


def test_a_request_that_is_too_large_is_not_kept() -> None:
    cache = ResponseCache()
    assert cache.get(key(b"/"), 1) is None
    cache.put(key(b"/subjects/" + b"x" * 20_000), 1, RESPONSE)
    cache.put(key(b"/subjects"), 1, Response(200, b"x" * 20_000, False))
    assert cache.size == 0
