"""`authorizer.class.name`: the built-in authorizer and classes of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moldau.config.definition import ConfigError
from moldau.security.acl.loading import SETTING, STANDARD_AUTHORIZER, load_authorizer
from moldau.security.acl.permissions import READ_TOPIC
from moldau.security.acl.standard import StandardAuthorizer
from moldau.security.principal import KafkaPrincipal


class NightWatch:
    """An authorizer of one's own."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.open = properties["night.watch.open"]

    def authorize(self, *arguments: Any, **options: Any) -> bool:
        return self.open == "true"

    def authorize_by_resource_type(self, *arguments: Any, **options: Any) -> bool:
        return self.open == "true"

    def apply(self, *arguments: Any) -> None:
        """It has no ACLs."""


def test_without_the_setting_there_is_no_authorizer() -> None:
    assert load_authorizer({}) is None
    assert load_authorizer({SETTING: ""}) is None


def test_standard_authorizer() -> None:
    authorizer = load_authorizer({SETTING: STANDARD_AUTHORIZER, "super.users": "User:root"})
    assert isinstance(authorizer, StandardAuthorizer)
    assert authorizer.authorize(KafkaPrincipal("User", "root"), "::1", READ_TOPIC, "foo")


class Strict(StandardAuthorizer):
    """The standard authorizer with a rule of its own."""

    def authorize(self, *arguments: Any, **options: Any) -> bool:
        return arguments[1] != "6.6.6.6" and super().authorize(*arguments, **options)


@pytest.mark.parametrize("separator", [".", ":"])
def test_a_python_class_is_called_with_the_properties(separator: str) -> None:
    name = f"{NightWatch.__module__}{separator}NightWatch"
    authorizer = load_authorizer({SETTING: name, "night.watch.open": "true"})
    assert authorizer is not None
    assert authorizer.authorize(KafkaPrincipal("User", "a"), "::1", READ_TOPIC, "foo")


def test_a_subclass_of_the_standard_authorizer_has_its_settings() -> None:
    authorizer = load_authorizer({SETTING: f"{Strict.__module__}:Strict", "super.users": "User:root"})
    assert isinstance(authorizer, Strict)
    root = KafkaPrincipal("User", "root")
    assert authorizer.authorize(root, "::1", READ_TOPIC, "foo")
    assert not authorizer.authorize(root, "6.6.6.6", READ_TOPIC, "foo")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({SETTING: "org.example.Authorizer"}, "Moldau cannot run Java classes"),
        ({SETTING: "collections.OrderedDict"}, "it has no authorize and no"),
        ({SETTING: "Nowhere"}, "nor a Python class"),
        ({SETTING: "no.module:Class"}, "nor a Python class"),
        ({SETTING: STANDARD_AUTHORIZER, "super.users": "root"}, "super.users=root: expected a string"),
    ],
)
def test_invalid_settings_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_authorizer(properties)
