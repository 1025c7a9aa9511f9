"""kafka-delegation-tokens: create, renew, expire and describe delegation tokens."""

from __future__ import annotations

import argparse
import base64
import binascii
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together, require
from moldau.cli.shared.connection import add_bootstrap_options, open_admin
from moldau.cli.shared.tool import run_tool

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient
    from moldau.client.admin.delegation_tokens import DelegationToken
    from moldau.security.principal import KafkaPrincipal

_ACTIONS = ("create", "renew", "expire", "describe")
_COLUMNS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
_WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-delegation-tokens")
    add_bootstrap_options(parser, old_broker_list=False)
    parser.flag("--create", "Create a token; --renewer-principal names who may renew it.")
    parser.flag("--renew", "Renew a token for --renew-time-period.")
    parser.flag("--expire", "Let a token expire after --expiry-time-period.")
    parser.flag("--describe", "List tokens: those of --owner-principal, or all that you may describe.")
    _principals(parser, "--owner-principal", "The owner, as principalType:name. Describe: may be repeated.")
    _principals(parser, "--renewer-principal", "Create: a renewer, as principalType:name. May be repeated.")
    _period(
        parser,
        "--max-life-time-period",
        "Create: the maximum lifetime in milliseconds; -1: delegation.token.max.lifetime.ms.",
    )
    _period(
        parser,
        "--renew-time-period",
        "Renew: the period in milliseconds; -1: delegation.token.expiry.time.ms.",
    )
    _period(
        parser,
        "--expiry-time-period",
        "Expire: the period in milliseconds; -1 removes the token at once.",
    )
    parser.option("--hmac", "HMAC", "Renew, expire: the HMAC of the token, in base64.")
    return parser


def _principals(parser: ToolParser, name: str, help: str) -> None:
    parser.option(name, "PRINCIPAL", help, action="append", default=[])


def _period(parser: ToolParser, name: str, help: str) -> None:
    parser.option(name, "MS", help, type=int)


def _execute(options: argparse.Namespace) -> None:
    _check(options)
    with open_admin(options) as admin:
        if options.create:
            _create(admin, options)
        elif options.renew:
            _renew(admin, options)
        elif options.expire:
            _expire(admin, options)
        else:
            _describe(admin, options)


def _check(options: argparse.Namespace) -> None:
    if sum(given(options, action) for action in _ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --create, --renew, --expire or --describe")
    require(options, "bootstrap-server", "command-config")
    if options.create:
        require(options, "max-life-time-period")
    if options.renew:
        require(options, "hmac", "renew-time-period")
    if options.expire:
        require(options, "hmac", "expiry-time-period")
    created, renewed = ("renewer-principal", "max-life-time-period"), "renew-time-period"
    refuse_together(options, "create", ("hmac", renewed, "expiry-time-period"))
    refuse_together(options, "renew", (*created, "expiry-time-period", "owner-principal"))
    refuse_together(options, "expire", ("max-life-time-period", renewed, "owner-principal"))
    refuse_together(options, "describe", (renewed, "max-life-time-period", "hmac", "expiry-time-period"))


def _create(admin: AdminClient, options: argparse.Namespace) -> None:
    renewers = _parsed(options.renewer_principal)
    lifetime_ms: int = options.max_life_time_period
    print(
        f"Calling create token operation with renewers :{_listed(renewers)} , "
        f"max-life-time-period :{lifetime_ms}"
    )
    owners = _parsed(options.owner_principal)
    token = admin.create_delegation_token(
        renewers=renewers, owner=owners[0] if owners else None, max_lifetime_ms=lifetime_ms
    )
    print(f"Created delegation token with tokenId : {token.token_info.token_id}")
    _print_tokens([token])


def _renew(admin: AdminClient, options: argparse.Namespace) -> None:
    hmac, period_ms = options.hmac, options.renew_time_period
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    expires_at = admin.renew_delegation_token(_decoded(hmac), renew_time_period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires_at)}")


def _expire(admin: AdminClient, options: argparse.Namespace) -> None:
    hmac, period_ms = options.hmac, options.expiry_time_period
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    expires_at = admin.expire_delegation_token(_decoded(hmac), expiry_time_period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires_at)}")


def _describe(admin: AdminClient, options: argparse.Namespace) -> None:
    owners = _parsed(options.owner_principal)
    if owners:
        print(f"Calling describe token operation for owners: {_listed(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_token(owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print_tokens(tokens)


def _parsed(principals: Iterable[str]) -> list[KafkaPrincipal]:
    from moldau.security.principal import parse_principal

    try:
        return [parse_principal(text.strip()) for text in principals]
    except ValueError as error:
        raise UsageError(str(error)) from error


def _listed(principals: Iterable[KafkaPrincipal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _decoded(hmac: str) -> bytes:
    try:
        return base64.b64decode(hmac, validate=True)
    except binascii.Error:
        raise UsageError("The HMAC is not valid base64") from None


def _print_tokens(tokens: Iterable[DelegationToken]) -> None:
    _print_row(_COLUMNS)
    for token in tokens:
        info = token.token_info
        _print_row(
            (
                info.token_id,
                token.hmac_as_base64_string,
                str(info.owner),
                str(info.token_requester),
                _listed(info.renewers),
                _date(info.issue_timestamp),
                _date(info.expiry_timestamp),
                _date(info.max_timestamp),
            )
        )


def _print_row(cells: Sequence[str]) -> None:
    """Print a row after an empty line, as Kafka's tool does."""
    print("\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)))


def _date(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000).strftime("%Y-%m-%dT%H:%M")
