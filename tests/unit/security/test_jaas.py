"""JAAS entries and files, as `java.io.StreamTokenizer` reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.config.definition import ConfigError
from moldau.security.jaas import (
    client_modules,
    option,
    parse_entries,
    parse_file,
    server_modules,
)
from moldau.security.system_properties import jaas_sections, system_properties

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def options(text: str) -> dict[str, str]:
    (module,) = parse_entries(text)
    return dict(module.options)


def test_an_entry_of_the_documentation() -> None:
    (module,) = parse_entries(
        f"""{PLAIN} required \\
        username="admin"
        password="admin-secret"
        user_admin="admin-secret"
        user_alice="alice-secret";""".replace("\\", "")
    )
    assert (module.name, module.flag) == (PLAIN, "required")
    assert module.options == {
        "username": "admin",
        "password": "admin-secret",
        "user_admin": "admin-secret",
        "user_alice": "alice-secret",
    }


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a=word", "word"),
        ("a=a.b-c_d$e9", "a.b-c_d$e9"),
        ("a='it\"s'", 'it"s'),
        ('a="it\'s"', "it's"),
        (r'a="q\"uo\\te"', 'q"uo\\te'),
        (r'a="tab\tnew\nline\101\7x\400"', "tab\tnew\nlineA\ax 0"),
        ('a = "spaced"', "spaced"),
        ("/* one */ a=x // two", "x"),
        ('a="//no comment"', "//no comment"),
        ('a=""', ""),
        ('a="grüße \u20ac"', "grüße \u20ac"),
        ("a=grüße", "grüße"),
        ('a="x;y=z"', "x;y=z"),
        ('"a"="x"', "x"),
        ("a=x a=y", "y"),
    ],
)
def test_values_as_users_write_them(written: str, value: str) -> None:
    assert options(f"Module required {written}\n;")["a"] == value


def test_control_flags_in_any_case() -> None:
    assert [
        parse_entries(f"M {flag};")[0].flag for flag in ("Required", "SUFFICIENT", "optional", "requisite")
    ] == [
        "required",
        "sufficient",
        "optional",
        "requisite",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        ("// nothing", "Login module not specified in JAAS config"),
        ("; required;", "Login module not specified in JAAS config"),
        ("Module", "Login module control flag not specified in JAAS config"),
        ("Module ;", "Login module control flag is not available in the JAAS config"),
        ("Module mandatory;", "Invalid login module control flag in JAAS config"),
        ("Module required a=b", "JAAS config entry not terminated by semi-colon"),
        ("Module required a=;", "Value not specified for key 'a' in JAAS config"),
        ("Module required port=9092;", "Value not specified for key 'port' in JAAS config"),
        ("Module required keyTab=/etc/x;\n;", "Value not specified for key 'keyTab' in JAAS config"),
        ("Module required a=b c;", "Value not specified for a key after option 'a' in JAAS config"),
        ("Module required -;", "Value not specified for a key after the control flag"),
    ],
)
def test_invalid_entries_are_refused_with_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_entries(text)
    assert message in caught.value.sentence


def test_secrets_are_not_shown() -> None:
    text = f"{PLAIN} required password=hunter two2secret;"
    with pytest.raises(ConfigError) as caught:
        parse_entries(text)
    assert "hunter" not in str(caught.value)
    assert "two2secret" not in str(caught.value)
    assert "hunter" not in repr(parse_entries(f"{PLAIN} required password=hunter;"))


FILE = f"""
// The brokers.
KafkaServer {{
    {PLAIN} required user_a="1";
    {SCRAM} required username="x" password="y";
}};
sasl_plaintext.KafkaServer {{ {PLAIN} required user_b="2"; }};
KafkaClient {{ {PLAIN} required username="${{user.name}}" password="p"; }};
"""


def test_sections_of_a_file() -> None:
    sections = parse_file(FILE, {"user.name": "carol"})
    assert set(sections) == {"KafkaServer", "sasl_plaintext.KafkaServer", "KafkaClient"}
    assert [module.name for module in sections["KafkaServer"]] == [PLAIN, SCRAM]
    assert option(sections["KafkaServer"], "username") == "x"
    assert option(sections["KafkaServer"], "username", PLAIN) is None
    assert option(sections["KafkaClient"], "username") == "carol"
    assert server_modules("SASL_PLAINTEXT", None, {}, sections)[0].options == {"user_b": "2"}
    assert server_modules("OTHER", None, {}, sections)[0].options == {"user_a": "1"}
    assert client_modules(None, {}, sections)[0].options["password"] == "p"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KafkaServer", "line 1: expected '{'"),
        ("KafkaServer { M required; }", "expected ';'"),
        ("KafkaServer { M required;", "not closed"),
        ("A { M required; }; A { M required; };", "appears twice"),
        ("{ }", "expected the name of a section"),
        ('A {\n M required a="${no.such}"; };', "the JVM property 'no.such'"),
    ],
)
def test_invalid_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_file(text, {})
    assert message in caught.value.sentence


def test_a_config_has_one_login_module() -> None:
    with pytest.raises(ConfigError, match="contains 2 login modules, should be 1 module"):
        server_modules("L", "A required; B required;", {}, {})


def test_a_missing_entry_names_the_sections_and_the_property() -> None:
    with pytest.raises(ConfigError) as caught:
        server_modules("EXTERNAL", None, {}, {})
    assert caught.value.sentence == (
        "Could not find a 'KafkaServer' or 'external.KafkaServer' entry in the JAAS configuration. "
        "System property 'java.security.auth.login.config' is not set"
    )
    with pytest.raises(ConfigError, match=r"'java\.security\.auth\.login\.config' is /etc/jaas\.conf"):
        client_modules(None, {"java.security.auth.login.config": "/etc/jaas.conf"}, {})


def test_the_file_of_kafka_opts(tmp_path: Path) -> None:
    path = tmp_path / "kafka jaas.conf"
    path.write_text(FILE)
    environment = {"KAFKA_OPTS": f"-Xmx1g '-Djava.security.auth.login.config={path}' -Duser.name=dave -Dflag"}
    properties = system_properties(environment)
    assert properties["flag"] == ""
    assert option(jaas_sections(properties)["KafkaClient"], "username") == "dave"
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        jaas_sections({"java.security.auth.login.config": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="KAFKA_OPTS cannot be read"):
        system_properties({"KAFKA_OPTS": "-Da='open"})


PIECE = st.sampled_from(["a", " required ", *" =\"';\\/*{}$\n-.9é\0"])
JAAS_LIKE = st.lists(PIECE, max_size=40).map("".join) | st.text(max_size=60)


@given(JAAS_LIKE)
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (lambda: parse_entries(text), lambda: parse_file(text, {})):
        try:
            parse()
        except ConfigError:
            pass


@given(st.dictionaries(st.from_regex(r"[a-zA-Z_]\w{0,8}", fullmatch=True), st.text(max_size=20), max_size=5))
@settings(max_examples=100, deadline=None)
def test_quoted_options_survive(pairs: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        return f'"{escaped}"'

    text = (
        "Module required " + " ".join(f"{quoted(key)}={quoted(value)}" for key, value in pairs.items()) + ";"
    )
    assert options(text) == pairs


def test_large_texts_take_linear_time() -> None:
    assert len(options('Module required a="' + "x" * 500_000 + '";')["a"]) == 500_000
