"""Tiered storage of a node: imported only if `remote.log.storage.system.enable` is set."""
