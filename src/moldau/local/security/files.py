"""Certificates and passwords of a cluster on one machine, created once in its data folder.

| file | content |
|---|---|
| `ca.pem` | certificate of the authority: what clients trust |
| `authority.pem` | certificate and key of the authority |
| `broker.pem`, `client.pem` | key and certificate of the brokers, and of the user |
| `passwords.json` | passwords of the user and of the brokers |

The folder and all files with secrets are readable by their owner only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

#: The names of the user, and of the brokers among themselves.
USER: Final = "moldau"
BROKER: Final = "broker"
FOLDER: Final = "security"
_PASSWORDS = "passwords.json"
_PASSWORD_BYTES = 18


@dataclass(frozen=True, slots=True)
class SecurityFiles:
    folder: Path
    password: str = field(repr=False)
    broker_password: str = field(repr=False)

    @classmethod
    def prepare(cls, data_dir: Path, hosts: Sequence[str]) -> SecurityFiles:
        """Return the files of the cluster in `data_dir`, created if they do not exist."""
        folder = data_dir / FOLDER
        if not exists(data_dir):
            _create(folder, hosts)
        passwords = json.loads((folder / _PASSWORDS).read_text())
        return cls(folder, passwords[USER], passwords[BROKER])

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def broker(self) -> Path:
        return self.folder / "broker.pem"

    @property
    def client(self) -> Path:
        return self.folder / "client.pem"


def exists(data_dir: Path) -> bool:
    """Whether the cluster in `data_dir` was created with security."""
    return (data_dir / FOLDER / _PASSWORDS).exists()


def _create(folder: Path, hosts: Sequence[str]) -> None:
    from moldau.security.tls.authority import Authority, write_private

    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authority = Authority.create()
    authority.write(folder / "authority.pem")
    authority.write_trust_pem(folder / "ca.pem")
    authority.issue(BROKER, hosts).write_pem(folder / "broker.pem")
    authority.issue(USER).write_pem(folder / "client.pem")
    passwords = {name: secrets.token_urlsafe(_PASSWORD_BYTES) for name in (USER, BROKER)}
    # Last: its existence means that all files are complete.
    write_private(folder / _PASSWORDS, json.dumps(passwords).encode())
