from __future__ import annotations

import pytest

from moldau.config.definition import ConfigError
from moldau.security.tls.mapping_rules import NoMatchingRule, PrincipalMapping

NAME = "CN=Duke,OU=ServiceUsers,O=Org,C=US"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", NAME),
        (None, NAME),
        (r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "Duke"),
        (r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", "duke@serviceusers"),
        (r"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "DUKE@SERVICEUSERS"),
        (r"RULE:^cn=x$/$1/,RULE:^CN=(.*?),.*$/$1/, DEFAULT", "Duke"),
        (r"RULE:^cn=x$/$1/ ,DEFAULT", NAME),
        (r"RULE:.*/user/", "useruser"),
        (r"RULE:^.*$/\$1\/x/", "$1/x"),
        (r"RULE:^CN=(.*?),.*$/$1-$4/", "Duke-$4"),
        (r"RULE:^CN=(.*?),.*$/$12/", "Duke2"),
        (r"RULE:^CN=(?<name>.*?),.*$/${name}/", "Duke"),
    ],
)
def test_rules_as_in_kafka(rules: str | None, expected: str) -> None:
    assert PrincipalMapping(rules).name_of(NAME) == expected


def test_a_rule_must_match_the_whole_name() -> None:
    with pytest.raises(NoMatchingRule, match="CN=Duke"):
        PrincipalMapping(r"RULE:^CN=(.*?),OU/$1/").name_of(NAME)


@pytest.mark.parametrize(
    "rules", ["default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?),OU=/", "RULE:^CN=(/x/", "RULE:a/b/L/U"]
)
def test_invalid_rules_are_refused(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping(rules)
