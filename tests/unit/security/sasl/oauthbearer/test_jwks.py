"""The keys of an identity provider: when they are fetched, and which are used."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from moldau.base.clock import ManualClock
from moldau.security.sasl.oauthbearer.jwks import Jwks, RefreshSettings, parse_keys
from moldau.security.sasl.oauthbearer.token import InvalidToken
from moldau.security.sasl.oauthbearer.urls import FetchFailed

KEY = RSAKey.generate_key(2048).as_dict(private=False)


def document(*key_ids: str) -> bytes:
    return json.dumps({"keys": [{**KEY, "kid": key_id} for key_id in key_ids]}).encode()


class Provider:
    def __init__(self, *key_ids: str) -> None:
        self.key_ids = key_ids
        self.fetches = 0
        self.fails = False

    def fetch(self) -> bytes:
        self.fetches += 1
        if self.fails:
            raise FetchFailed("no route")
        return document(*self.key_ids)


def world(*key_ids: str) -> tuple[Provider, ManualClock, Jwks]:
    provider, clock = Provider(*key_ids), ManualClock()
    return provider, clock, Jwks(provider.fetch, RefreshSettings(), clock)


def test_keys_are_fetched_with_the_first_login_and_after_the_refresh_interval() -> None:
    provider, clock, keys = world("a")
    assert provider.fetches == 0
    for _ in range(3):
        assert keys.find("a", "RS256")[0].key_id == "a"
    assert provider.fetches == 1
    clock.advance(3_600_000)
    keys.find("a", "RS256")
    assert provider.fetches == 2


def test_an_unknown_key_id_makes_one_early_refresh_a_minute() -> None:
    provider, clock, keys = world("a")
    keys.find("a", "RS256")
    provider.key_ids = ("b",)
    assert keys.find("b", "RS256")[0].key_id == "b"
    assert provider.fetches == 2
    clock.advance(2000)
    for _ in range(3):
        with pytest.raises(InvalidToken):
            keys.find("c", "RS256")
        clock.advance(2000)
    assert provider.fetches == 3
    clock.advance(60_000)
    with pytest.raises(InvalidToken):
        keys.find("c", "RS256")
    assert provider.fetches == 4


def test_random_key_ids_make_one_refresh_a_second() -> None:
    provider, clock, keys = world("a")
    keys.find("a", "RS256")
    for n in range(100):
        with pytest.raises(InvalidToken):
            keys.find(f"random-{n}", "RS256")
        clock.advance(50)
    assert provider.fetches <= 7
    assert len(keys._missing) <= 16


def test_a_huge_key_id_makes_no_refresh() -> None:
    provider, _, keys = world("a")
    keys.find("a", "RS256")
    with pytest.raises(InvalidToken):
        keys.find("x" * 1001, "RS256")
    assert provider.fetches == 1


def test_known_keys_stay_in_use_while_the_provider_is_down() -> None:
    provider, clock, keys = world("a")
    keys.find("a", "RS256")
    provider.fails = True
    clock.advance(3_600_000)
    assert keys.find("a", "RS256")
    assert provider.fetches == 2
    assert keys.find("a", "RS256"), "the next attempt waits"
    assert provider.fetches == 2
    clock.advance(200)
    keys.find("a", "RS256")
    assert provider.fetches == 3


def test_without_keys_tokens_are_refused_until_the_provider_answers() -> None:
    provider, clock, keys = world("a")
    provider.fails = True
    with pytest.raises(InvalidToken, match="no route"):
        keys.find("a", "RS256")
    provider.fails = False
    clock.advance(200)
    assert keys.find("a", "RS256")


def test_logins_do_not_fetch_at_the_same_time() -> None:
    started, release = threading.Event(), threading.Event()
    fetches: list[int] = []

    def fetch() -> bytes:
        fetches.append(1)
        started.set()
        release.wait(10)
        return document("a")

    keys = Jwks(fetch, RefreshSettings(), ManualClock())
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(keys.find("a", "RS256"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert started.wait(10)
    release.set()
    for thread in threads:
        thread.join(10)
    assert len(found) == 4 and len(fetches) == 1


def test_only_public_keys_for_signatures_are_used() -> None:
    entries = [
        {**KEY, "kid": "good", "use": "sig"},
        {**KEY, "kid": "encryption", "use": "enc"},
        {**OctKey.generate_key(256).as_dict(private=True), "kid": "secret"},
        {**RSAKey.generate_key(1024).as_dict(private=False), "kid": "weak"},
        {**ECKey.generate_key("P-256").as_dict(private=False), "kid": "curve"},
        {"kty": "RSA", "kid": "broken", "n": "!", "e": 5},
        {"kty": ["RSA"]},
        "text",
    ]
    keys = parse_keys(json.dumps({"keys": entries}).encode())
    assert [key.key_id for key in keys] == ["good", "curve"]


def test_a_key_is_used_for_its_type_and_algorithm_only() -> None:
    (key,) = parse_keys(json.dumps({"keys": [{**KEY, "alg": "RS256"}]}).encode())
    assert key.suits(None, "RS256")
    assert not key.suits(None, "PS256")
    assert not key.suits(None, "ES256")
    assert not key.suits("other", "RS256")


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys":5}', b"[" * 100_000, b"\xff"])
def test_other_documents_are_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        parse_keys(text)
