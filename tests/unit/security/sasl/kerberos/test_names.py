"""Kerberos names and the rules that shorten them; the cases are those of Kafka's KerberosRuleTest."""

from __future__ import annotations

import pytest

from moldau.config.definition import ConfigError
from moldau.security.sasl.kerberos.names import KerberosName, NoMatchingRule, ShortNames

REALM = "REALM.COM"


def short(name: str, *rules: str) -> str:
    return ShortNames(rules or ("DEFAULT",), REALM).short_name(name)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("App.service-name/example.com@REALM.COM", ("App.service-name", "example.com", "REALM.COM")),
        ("App.service-name@REALM.COM", ("App.service-name", None, "REALM.COM")),
        ("user/host", ("user/host", None, None)),
        ("user", ("user", None, None)),
    ],
)
def test_names_have_a_service_a_host_and_a_realm(text: str, parts: tuple[str | None, ...]) -> None:
    name = KerberosName.parse(text)
    assert (name.service, name.host, name.realm) == parts


@pytest.mark.parametrize("text", ["a@b@c", "a/b/c@d", "@@"])
def test_malformed_names_have_no_short_form(text: str) -> None:
    with pytest.raises(NoMatchingRule):
        short(text)


RULES = (
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("App.service-name@REALM.COM", "service-name"),
        ("user/host@REALM.COM", "user"),
        ("user", "user"),
    ],
)
def test_rules_are_tried_in_order(name: str, expected: str) -> None:
    assert short(name, *RULES) == expected


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        ("RULE:[1:$1]/L", "User@REALM.COM", "user"),
        ("RULE:[2:$1]/L", "TestABC/host@FOO.COM", "testabc"),
        ("RULE:[2:$1](Test.*)s/ABC///L", "TestABC/host@FOO.COM", "test"),
        ("RULE:[2:$1](Test.*)s/ABC/XYZ/g/L", "TestABC/host@FOO.COM", "testxyz"),
        ("RULE:[1:$1]/U", "User@REALM.COM", "USER"),
        ("RULE:[2:$1]/U", "TestABC/host@FOO.COM", "TESTABC"),
        ("RULE:[2:$1](Test.*)s/ABC/XYZ/", "TestABC/host@FOO.COM", "TestXYZ"),
        ("RULE:[2:$1;$2](.*;admin)s/;admin//", "joe/admin@FOO.COM", "joe"),
        ("RULE:[1:$1@$0](.*@FOO.COM)s/@.*//", "joe@FOO.COM", "joe"),
        ("RULE:[1:$1]s/a/b/", "banana@X", "bbnana"),
        ("RULE:[1:$1]s/a/b/g", "banana@X", "bbnbnb"),
        (r"RULE:[1:$1]s/(b)(a)/$2\$$1/", "bat@X", "a$bt"),
    ],
)
def test_a_rule_changes_the_name(rule: str, name: str, expected: str) -> None:
    assert short(name, rule) == expected


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("DEFAULT", "user@OTHER.COM"),
        ("RULE:[2:$1]", "user@REALM.COM"),
        ("RULE:[1:$1@$0]", "user@REALM.COM"),
        ("RULE:[1:$1](x.*)", "user@REALM.COM"),
        ("RULE:[1:$3]", "user@REALM.COM"),
        ("RULE:[1:$]", "user@REALM.COM"),
    ],
)
def test_names_without_a_matching_rule_are_refused(rule: str, name: str) -> None:
    with pytest.raises(NoMatchingRule):
        short(name, rule)


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:[1:$1",
        "RULE:[:$1]",
        "RULE:[1:$1]/X",
        "RULE:[1:$1](*)",
        "RULE:[1:$1]s/a/b",
    ],
)
def test_invalid_rules_are_config_errors(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"principal\.to\.local\.rules"):
        ShortNames([rule], REALM)
