"""JVM system properties, as users set them for Apache Kafka: `KAFKA_OPTS="-Dname=value ..."`.

Some security settings exist only as JVM properties: the JAAS file (`java.security.auth.login.config`), the
URLs tokens may come from (`org.apache.kafka.sasl.oauthbearer.allowed.urls`). The same environment variable
works here.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from moldau.config.definition import ConfigError
from moldau.security.jaas import LOGIN_CONFIG_PROPERTY, LoginModule, parse_file


def system_properties(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the `-Dname=value` options of `KAFKA_OPTS`; the last one of a name is used."""
    text = (os.environ if environment is None else environment).get("KAFKA_OPTS", "")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"The environment variable KAFKA_OPTS cannot be read: {error}") from None
    pairs = (word[2:].partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


def jaas_sections(properties: Mapping[str, str]) -> dict[str, tuple[LoginModule, ...]]:
    """Read the JAAS file that the JVM properties name; empty without one."""
    path = properties.get(LOGIN_CONFIG_PROPERTY)
    if path is None:
        return {}
    try:
        with open(path.removeprefix("file:"), encoding="utf-8") as file:
            return parse_file(file.read(), properties)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(
            f"The JAAS file {path} of the system property '{LOGIN_CONFIG_PROPERTY}' cannot be read: {reason}"
        ) from None
