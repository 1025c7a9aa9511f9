"""Listeners and voter endpoints."""

from __future__ import annotations

import pytest

from moldau.base.ids import parse_uuid
from moldau.config.definition import ConfigError
from moldau.config.listeners import Endpoint, check_ports, parse_endpoints, parse_map, parse_protocol_map
from moldau.config.quorum_voters import (
    DynamicVoter,
    HostPort,
    Voter,
    parse_dynamic_voters,
    parse_servers,
    parse_voters,
)

PLAIN = {"A": "PLAINTEXT", "B": "PLAINTEXT", "C": "PLAINTEXT"}
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("A://:9092", "", 9092),
        ("a://localhost:0", "localhost", 0),
        ("A://[::1]:9092", "::1", 9092),
        ("A://10.0.0.1:65535", "10.0.0.1", 65535),
        ("A://my_host-1.example%eth0:1", "my_host-1.example%eth0", 1),
    ],
)
def test_listeners_are_parsed(text: str, host: str, port: int) -> None:
    assert parse_endpoints("listeners", [text], PLAIN) == (Endpoint("A", "PLAINTEXT", host, port),)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["A:9092"], "a listener has the form NAME://host:port"),
        (["A://h"], "a listener has the form NAME://host:port"),
        (["A://h!x:1"], "a listener has the form NAME://host:port"),
        (["A://h:70000"], "a port is a number from 0 to 65535"),
        (["A://h:-1"], "a port is a number from 0 to 65535"),
        (["X://h:1"], "add X:PLAINTEXT"),
        (["A://h:1", "a://h:2"], "two listeners named A"),
    ],
)
def test_invalid_listeners_are_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refusal:
        parse_endpoints("listeners", texts, PLAIN)
    assert refusal.value.sentence.startswith("listeners ")


def test_endpoints_are_formatted_as_they_are_parsed() -> None:
    assert str(Endpoint("A", "PLAINTEXT", "::1", 9092)) == "A://[::1]:9092"
    assert str(Endpoint("A", "PLAINTEXT", "", 9092)) == "A://:9092"


@pytest.mark.parametrize(
    ("texts", "allowed"),
    [
        (["A://:1", "B://:2"], True),
        (["A://:0", "B://:0"], True),
        (["A://127.0.0.1:1", "B://[::1]:1"], True),
        (["A://:1", "B://:1"], False),
        (["A://h:1", "B://i:1"], False),
        (["A://127.0.0.1:1", "B://127.0.0.2:1"], False),
        (["A://127.0.0.1:1", "B://h:1"], False),
        (["A://127.0.0.1:1", "B://[::1]:1", "C://[::2]:1"], False),
    ],
)
def test_listeners_share_a_port_only_over_ipv4_and_ipv6(texts: list[str], allowed: bool) -> None:
    endpoints = parse_endpoints("listeners", texts, PLAIN)
    if allowed:
        check_ports("listeners", endpoints)
        return
    with pytest.raises(ConfigError, match="listeners uses port 1 more than once"):
        check_ports("listeners", endpoints)


def test_security_protocol_map_is_parsed() -> None:
    assert parse_protocol_map("map", "a:PLAINTEXT, B:ssl,") == {"A": "PLAINTEXT", "B": "SSL"}
    with pytest.raises(
        ConfigError, match="map gives listener A the protocol 'FOO'; allowed are PLAINTEXT, SSL"
    ):
        parse_protocol_map("map", "A:FOO")


def test_map_entries_are_split_at_the_last_colon() -> None:
    assert parse_map("limits", "::1:5,host: 6") == {"::1": "5", "host": "6"}
    with pytest.raises(ConfigError, match="limits has the entry 'x'"):
        parse_map("limits", "x")


def test_static_voters_are_parsed() -> None:
    assert parse_voters("v", ["1@h:9093", "2@[::1]:1"]) == (Voter(1, "h", 9093), Voter(2, "::1", 1))
    assert parse_voters("v", ["1@h:1", "1@h:2"]) == (Voter(1, "h", 2),)
    assert parse_servers("s", ["[::1]:1", "h:2"]) == (HostPort("::1", 1), HostPort("h", 2))


@pytest.mark.parametrize("text", ["x", "1@h", "a@h:1", "1@h:99999", "1@h!:1"])
def test_invalid_static_voters_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^v has the entry '{text}'"):
        parse_voters("v", [text])


def test_initial_controllers_are_parsed() -> None:
    one = DynamicVoter(1, parse_uuid(DIRECTORY), "h", 1)
    two = DynamicVoter(2, parse_uuid(DIRECTORY), "::1", 2)
    assert parse_dynamic_voters(f"2@[::1]:2:{DIRECTORY}, 1@h:1:{DIRECTORY}") == (one, two)
    assert str(two) == f"2@[::1]:2:{DIRECTORY}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "No voters given"),
        ("foo", "a voter has the form id@host:port:directory"),
        ("1@h:1", "a voter has the form id@host:port:directory"),
        ("1@h:99999:x", "a voter has the form id@host:port:directory"),
        ("1@h:1:xyz", "no valid directory id"),
        (f"1@h:1:{DIRECTORY},1@h:2:{DIRECTORY}", "Node id 1 was specified more than once"),
    ],
)
def test_invalid_initial_controllers_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_dynamic_voters(text)
