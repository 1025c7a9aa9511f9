"""Loading the remote store that the configuration names."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import cast

from moldau.base.errors import ErrorCode, KafkaError
from moldau.tiered.stores.folder import KAFKA_CLASS
from moldau.tiered.stores.interface import RemoteStore

_FOLDER_STORE = "moldau.tiered.stores.folder.FolderStore"


class StoreNotLoaded(KafkaError):
    """The configured class cannot be used; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_CONFIG, message)


def load_store(class_name: str, class_path: str | None, configs: Mapping[str, str]) -> RemoteStore:
    """Create the store of a class, whose module may be in the folder `class_path`. Blocking."""
    if class_name == KAFKA_CLASS:
        class_name = _FOLDER_STORE
    module_name, _, name = class_name.rpartition(".")
    if not module_name:
        raise StoreNotLoaded(f"{class_name} is not a Python class: write it as package.module.Class")
    if class_path and class_path not in sys.path:
        sys.path.append(class_path)
    try:
        store_class = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # the module may be the operator's
        raise StoreNotLoaded(
            f"remote.log.storage.manager.class.name={class_name} cannot be loaded ({error}); it must name a "
            "Python class, and remote.log.storage.manager.class.path the folder of its module."
        ) from error
    try:
        return cast(RemoteStore, store_class(configs))
    except ValueError as error:
        raise StoreNotLoaded(f"{class_name} cannot be used: {error}.") from error
    except Exception as error:
        raise StoreNotLoaded(f"{class_name} cannot be used: {type(error).__name__}: {error}.") from error
