"""`moldau certificates`: an authority of one's own, and certificates for servers and clients.

The authority is created once in the folder and used again. Existing certificates are kept unless they are
renewed, so that a repeated command changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from moldau.cli.moldau.exits import exit_with
from moldau.cli.shared.tool import ToolError

if TYPE_CHECKING:
    from moldau.security.tls.authority import Authority

AUTHORITY_FILE = "ca-key.pem"
TRUST_FILE = "ca.pem"


def certificates(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder for the files.")],
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[,HOST…]",
            help="A server certificate for these host names and addresses, stored as FOLDER/<first>.pem. "
            "May be repeated.",
        ),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A client certificate for User:CN=NAME, stored as FOLDER/NAME.pem. May be repeated.",
        ),
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Replace existing certificates by new ones.")
    ] = False,
) -> None:
    """Create certificates for TLS, signed by an authority in the folder.

    Each file contains a private key and a certificate, ready for ssl.keystore.location with
    ssl.keystore.type=PEM. Clients trust FOLDER/ca.pem (ssl.truststore.location, ssl.truststore.type=PEM).
    """

    def work() -> int:
        create(Path(folder), server or [], client or [], renew=renew, announce=print)
        return 0

    exit_with(work)


def create(
    folder: Path, servers: list[str], clients: list[str], *, renew: bool, announce: Callable[[str], None]
) -> None:
    """Create what is missing in the folder, and announce each file that was written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        authority = _authority(folder, announce)
        for hosts in servers:
            names = [host.strip() for host in hosts.split(",") if host.strip()]
            if not names:
                raise ToolError("--server needs at least one host name")
            _issue(folder, authority, names[0], names, renew=renew, announce=announce)
        for name in clients:
            _issue(folder, authority, name, [], renew=renew, announce=announce)
    except OSError as error:
        raise ToolError(f"{error.filename or folder}: {error.strerror}") from None


def _authority(folder: Path, announce: Callable[[str], None]) -> Authority:
    from moldau.security.tls.authority import Authority

    path = folder / AUTHORITY_FILE
    if not path.exists():
        authority = Authority.create("Moldau CA")
        announce(f"{authority.write(path)}: key of the authority; keep it secret")
    try:
        authority = Authority.load(path)
    except ValueError as error:
        raise ToolError(f"{path} is not the key and certificate of an authority: {error}") from None
    trust = folder / TRUST_FILE
    if not trust.exists():
        announce(
            f"{authority.write_trust_pem(trust)}: certificate of the authority, for all clients and servers"
        )
    return authority


def _issue(
    folder: Path,
    authority: Authority,
    name: str,
    hosts: list[str],
    *,
    renew: bool,
    announce: Callable[[str], None],
) -> None:
    if "/" in name or name in ("ca", "ca-key", ".", ".."):
        raise ToolError(f"{name} cannot be the name of a certificate")
    path = folder / f"{name}.pem"
    if path.exists() and not renew:
        announce(f"{path}: kept; --renew replaces it")
        return
    issued = authority.issue(name, hosts) if hosts else authority.issue(name, usages=["client"])
    valid_for = ", ".join(hosts) if hosts else f"User:CN={name}"
    announce(f"{issued.write_pem(path)}: key and certificate for {valid_for}")
