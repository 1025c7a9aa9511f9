"""A node imports only what its configuration needs: start time and memory depend on it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = "import sys, moldau.server.run, moldau.server.node; print('\\n'.join(sys.modules))"

#: Packages of features that a plain node does not use, and modules that weigh much or are rarely needed.
_LATE = (
    "cramjam",
    "cryptography",
    "hashlib",
    "ipaddress",
    "shutil",
    "urllib",
    "xxhash",
    "moldau.network.tls",
    "moldau.schemas",
    "moldau.security.jaas",
    "moldau.security.sasl.clients",
    "moldau.security.sasl.scram",
    "moldau.security.sasl.servers",
    "moldau.security.tls",
    "moldau.server.authentication.sasl",
    "moldau.server.metrics",
    "moldau.server.tiered",
    "moldau.storage.cleaner.cleaner",
    "moldau.storage.cleaner.offset_map",
    "moldau.tiered",
    "moldau.tracing",
)


def test_a_plain_node_imports_nothing_of_features_that_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert [name for name in imported if name.startswith(tuple(f"{late}." for late in _LATE))] == []
    assert [name for name in _LATE if name in imported] == []
