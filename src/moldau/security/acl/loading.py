"""The authorizer that `authorizer.class.name` names.

`org.apache.kafka.metadata.authorizer.StandardAuthorizer` is built in. Any other name is the path of a Python
class that implements `Authorizer` (`package.module:Class` or `package.module.Class`); it is called with the
properties of the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from moldau.config.definition import ConfigError
from moldau.security.acl.authorizer import Authorizer

SETTING = "authorizer.class.name"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_METHODS = ("authorize", "authorize_by_resource_type", "apply")


def load_authorizer(properties: Mapping[str, str]) -> Authorizer | None:
    """Return the authorizer of a node with these properties; None if it has none."""
    name = properties.get(SETTING, "").strip()
    if not name:
        return None
    # Imported only by nodes with an authorizer.
    from moldau.security.acl.standard import StandardAuthorizer

    if name == STANDARD_AUTHORIZER:
        try:
            return StandardAuthorizer.of(properties)
        except ValueError as error:
            raise ConfigError(f"super.users={properties['super.users']}: {error}.") from error
    factory = _class(name)
    standard = isinstance(factory, type) and issubclass(factory, StandardAuthorizer)
    return _checked(name, factory.of(properties) if standard else factory(properties))


def _class(name: str) -> Any:
    module, _, class_name = name.rpartition(":" if ":" in name else ".")
    try:
        return getattr(import_module(module), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{SETTING}={name} is neither {STANDARD_AUTHORIZER} nor a Python class that can be imported "
            f"({error}); Moldau cannot run Java classes."
        ) from error


def _checked(name: str, authorizer: Authorizer) -> Authorizer:
    missing = [method for method in _METHODS if not callable(getattr(authorizer, method, None))]
    if missing:
        raise ConfigError(f"{SETTING}={name} is not an authorizer: it has no {' and no '.join(missing)}.")
    return authorizer
