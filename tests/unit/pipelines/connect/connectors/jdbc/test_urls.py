"""JDBC URLs."""

from __future__ import annotations

import pytest

from moldau.pipelines.connect.connectors.jdbc.model import split_name
from moldau.pipelines.connect.connectors.jdbc.urls import parse_url
from moldau.pipelines.connect.data.errors import ConfigError


def test_urls_of_servers() -> None:
    target = parse_url("jdbc:postgresql://a:1,[::1]:2,c/db?user=u&password=p%26q")
    assert target.hosts == (("a", 1), ("::1", 2), ("c", 5432))
    assert (target.database, target.options) == ("db", {"user": "u", "password": "p&q"})
    assert "p&q" not in f"{target} {target!r}"
    assert parse_url("jdbc:postgresql:db").hosts == (("localhost", 5432),)
    assert str(parse_url("jdbc:mariadb://u:p@h/db")) == "mariadb://h:3306/db"


def test_urls_of_files() -> None:
    assert parse_url("jdbc:sqlite:/a/b.db").database == "/a/b.db"


@pytest.mark.parametrize(
    "url", ["postgresql://h/secret", "jdbc:oracle:secret", "jdbc:sqlite:", "jdbc:mysql://h:secret"]
)
def test_wrong_urls_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_url(url)
    assert "secret" not in str(refused.value)


def test_names_have_quoted_parts() -> None:
    assert split_name('a."b.""c"') == ["a", 'b."c']
    assert split_name("`x`.y") == ["x", "y"]
