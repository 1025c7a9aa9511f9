"""Users of BASIC authentication: names, passwords and roles.

The file has the format of Jetty's PropertyFileLoginModule, `user: password,role,…`, which Confluent's
services use; a JAAS section named like `authentication.realm` names the file. Passwords are plain, `OBF:…` or
`MD5:…`. In addition, `authentication.users.file` names such a file directly, and
`authentication.user.NAME=password,role,…` declares one user.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from moldau.config.definition import ConfigError
from moldau.config.properties import PropertiesError, load_properties
from moldau.security.system_properties import jaas_sections, system_properties

_USER: Final = "authentication.user."
_FILE: Final = "authentication.users.file"
_REALM: Final = "authentication.realm"
_LOGIN_MODULE: Final = "PropertyFileLoginModule"
_MD5, _OBFUSCATED, _CRYPT = "MD5:", "OBF:", "CRYPT:"
#: Environment variables with `-D` options, as Confluent's start scripts read them.
_OPTIONS: Final = ("SCHEMA_REGISTRY_OPTS", "KAFKAREST_OPTS", "KAFKA_OPTS")


class User(NamedTuple):
    name: str
    #: SHA-256 of the password, or of its MD5 in hexadecimal.
    digest: bytes
    md5: bool
    roles: frozenset[str]

    def has_password(self, password: str) -> bool:
        """Compare in a time that depends neither on the password nor on its length."""
        given = _hex_md5(password) if self.md5 else password
        return hmac.compare_digest(_digest(given), self.digest)


_UNKNOWN: Final = User("", b"\0" * 32, False, frozenset())


class Users:
    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = users

    def authenticate(self, name: str, password: str) -> User | None:
        """Return the user if the password is right; an unknown name takes as long as a wrong password."""
        user = self._users.get(name, _UNKNOWN)
        return user if user.has_password(password) and user is not _UNKNOWN else None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Users:
        """Read the users of a service; `ConfigError` if there are none, or a file cannot be read."""
        declared: dict[str, str] = {}
        for path in _files(properties):
            declared.update(_read(path))
        declared.update(
            (name.removeprefix(_USER), value) for name, value in properties.items() if name.startswith(_USER)
        )
        if not declared:
            raise ConfigError(
                f"authentication.method=BASIC needs users: set {_FILE}=FILE with lines "
                f"'user: password,role', or {_USER}NAME=password,role."
            )
        return cls({name: _user(name, value) for name, value in declared.items()})


def _files(properties: Mapping[str, str]) -> list[str]:
    if path := properties.get(_FILE):
        return [path]
    realm = properties.get(_REALM, "").strip()
    if not realm:
        return []
    sections: dict[str, tuple[object, ...]] = {}
    for name in _OPTIONS:
        options = system_properties({"KAFKA_OPTS": os.environ.get(name, "")})
        sections.update(jaas_sections(options))
        if realm in sections:
            return _files_of_realm(realm, options)
    return []


def _files_of_realm(realm: str, options: Mapping[str, str]) -> list[str]:
    found = []
    for module in jaas_sections(options)[realm]:
        if not module.name.endswith(_LOGIN_MODULE):
            raise ConfigError(
                f"JAAS section {realm}: {module.name} is not supported; use Jetty's {_LOGIN_MODULE}, "
                "BEARER tokens, or certificates of clients."
            )
        if "file" not in module.options:
            raise ConfigError(f"JAAS section {realm}: {module.name} lacks the option file.")
        found.append(module.options["file"])
    return found


def _read(path: str) -> dict[str, str]:
    try:
        return load_properties(path)
    except OSError as error:
        raise ConfigError(f"The file of users {path} cannot be read: {error.strerror}.") from None
    except PropertiesError as error:
        raise ConfigError(f"The file of users {path} cannot be read: {error}.") from None


def _user(name: str, value: str) -> User:
    password, *roles = (part.strip() for part in value.split(","))
    if password.startswith(_CRYPT):
        raise ConfigError(f"The password of user {name} is of the form CRYPT:, which is not supported.")
    if password.startswith(_OBFUSCATED):
        password = _deobfuscate(name, password.removeprefix(_OBFUSCATED))
    md5 = password.startswith(_MD5)
    text = password.removeprefix(_MD5).lower() if md5 else password
    return User(name, _digest(text), md5, frozenset(filter(None, roles)))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _hex_md5(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _deobfuscate(name: str, text: str) -> str:
    """Invert Jetty's obfuscation: groups of four digits to base 36, each made of a byte and its mirror image.

    A group that begins with `U` holds the byte itself, for bytes that are not ASCII.
    """
    decoded = bytearray()
    position = 0
    try:
        while position < len(text):
            if text[position] == "U":
                decoded.append(int(text[position + 1 : position + 5], 36) >> 8)
                position += 5
            else:
                high, low = divmod(int(text[position : position + 4], 36), 256)
                decoded.append((high + low - 254) // 2)
                position += 4
        return decoded.decode("utf-8")
    except ValueError:
        raise ConfigError(f"The password of user {name} is not a valid OBF: password.") from None
