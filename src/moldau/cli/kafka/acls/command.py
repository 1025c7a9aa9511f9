"""kafka-acls: add, remove and list ACLs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from moldau.base.errors import KafkaError
from moldau.cli.kafka.acls.plan import (
    Entry,
    Plan,
    Resource,
    operation_name,
    pattern_type,
    plan_of,
    principals,
    resources,
    split_binding,
)
from moldau.cli.shared.arguments import ToolParser, UsageError, given, refuse_together
from moldau.cli.shared.connection import add_either_bootstrap, open_admin_of_either
from moldau.cli.shared.java import java_error
from moldau.cli.shared.tool import ToolError, run_tool
from moldau.security.acl.bindings import AclBinding, AclBindingFilter
from moldau.security.acl.enums import AclOperation, PatternType

if TYPE_CHECKING:
    from moldau.client.admin.client import AdminClient

_ACTIONS = ("add", "remove", "list")
_PRINCIPALS = ("allow-host", "allow-principal", "deny-host", "deny-principal")


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(
        _parser, _execute, argv, report=lambda text: print(f"Error while executing ACL command: {text}")
    )


def _parser() -> ToolParser:
    parser = ToolParser("kafka-acls", notes=_operation_names)
    add_either_bootstrap(parser)
    parser.flag("--add", "Add ACLs.")
    parser.flag("--remove", "Remove ACLs.")
    parser.flag("--list", "List the ACLs of the named resources, or all.")
    _add_resource_options(parser)
    _add_entry_options(parser)
    parser.flag(
        "--producer", "Add or remove the ACLs of a producer: Write, Describe and Create on the topics."
    )
    parser.flag(
        "--consumer",
        "Add or remove the ACLs of a consumer: Read and Describe on the topics, Read on the groups.",
    )
    parser.flag(
        "--idempotent",
        "With --producer: also IdempotentWrite on the cluster. A transactional id implies it.",
    )
    parser.option(
        "--principal", "PRINCIPAL", "List: only ACLs of this principal.", action="append", nargs="?"
    )
    parser.flag("--force", "Remove without asking for confirmation.")
    return parser


def _add_resource_options(parser: ToolParser) -> None:
    def names(option: str, what: str) -> None:
        parser.option(
            option, option[2:].upper(), f"{what}; '*' stands for all. May be repeated.", action="append"
        )

    names("--topic", "The topic of the ACLs")
    names("--group", "The group of the ACLs")
    names("--transactional-id", "The transactional id of the ACLs")
    names("--delegation-token", "The delegation token of the ACLs")
    names("--user-principal", "The user of the ACLs, for CreateTokens and DescribeTokens")
    parser.flag("--cluster", "The ACLs are those of the cluster.")
    parser.option(
        "--resource-pattern-type",
        "ANY|MATCH|LITERAL|PREFIXED",
        "The type of the resource pattern (literal by default). Add: literal or prefixed. List, remove: also "
        "any, for all types with exactly this name, and match, for all patterns that apply to the name. "
        "WARNING: match with --remove also removes ACLs of other resources.",
        type=pattern_type,
        default=PatternType.LITERAL,
    )


def _add_entry_options(parser: ToolParser) -> None:
    def values(option: str, metavar: str, text: str) -> None:
        parser.option(option, metavar, f"{text} May be repeated.", action="append")

    values("--operation", "OPERATION", "The operation that is allowed or denied (All by default, see below).")
    values("--allow-principal", "PRINCIPAL", "Allow this principal, as User:name; User:'*' stands for all.")
    values("--deny-principal", "PRINCIPAL", "Deny this principal. A denial has precedence.")
    values("--allow-host", "HOST", "The address from which --allow-principal applies ('*' by default).")
    values("--deny-host", "HOST", "The address from which --deny-principal applies ('*' by default).")


def _operation_names() -> str:
    real = [each for each in AclOperation if each not in (AclOperation.UNKNOWN, AclOperation.ANY)]
    return "operations:\n" + "\n".join(f"  {operation_name(operation)}" for operation in real)


def _check(options: argparse.Namespace) -> None:
    if options.bootstrap_server and options.bootstrap_controller:
        raise UsageError("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not options.bootstrap_server and not options.bootstrap_controller:
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    if sum(given(options, action) for action in _ACTIONS) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    refuse_together(options, "list", ("producer", "consumer", *_PRINCIPALS))
    for role in ("producer", "consumer"):
        refuse_together(options, role, ("operation", "deny-principal", "deny-host"))
    if given(options, "principal") and not options.list:
        raise UsageError("The --principal option is only available if --list is set")
    _check_roles(options)


def _check_roles(options: argparse.Namespace) -> None:
    if options.producer and not options.topic:
        raise UsageError("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise UsageError("The --idempotent option is only available if --producer is set")
    other = not options.producer and (options.cluster or options.transactional_id)
    if options.consumer and (not options.topic or not options.group or other):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )


def _execute(options: argparse.Namespace) -> None:
    from moldau.client.wire.cluster import BootstrapFailed

    _check(options)
    try:
        if options.add:
            _add(options)
        elif options.remove:
            _remove(options)
        else:
            _list(options)
    except BootstrapFailed:
        raise
    except KafkaError as error:
        raise ToolError(java_error(error)) from error


# Add.


def _add(options: argparse.Namespace) -> None:
    kind = options.resource_pattern_type
    if kind not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise UsageError(f"A '--resource-pattern-type' value of '{kind.name}' is not valid when adding acls.")
    plan = plan_of(options)
    if not all(plan.values()):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    with open_admin_of_either(options) as admin:
        for resource, entries in plan.items():
            _add_to(admin, resource, entries)


def _add_to(admin: AdminClient, resource: Resource, entries: Iterable[Entry]) -> None:
    from moldau.client.admin.client import checked

    existing = set(admin.describe_acls(resource.filter()))
    new: dict[AclBinding, Entry] = {}
    for entry in entries:
        binding = resource.binding(entry)
        if binding in existing:
            print(f"Acl (pattern={resource}, entry={entry}) already exists.")
        else:
            new[binding] = entry
    if new:
        print(f"Adding ACLs for resource `{resource}`: \n {_listed(new.values())}\n")
        checked(admin.create_acls(new))


def _listed(entries: Iterable[Entry]) -> str:
    return "\n".join(f"\t{entry}" for entry in entries)


# Remove.


def _remove(options: argparse.Namespace) -> None:
    from moldau.client.admin.client import checked

    plan = plan_of(options)
    with open_admin_of_either(options) as admin:
        for resource, entries in plan.items():
            if options.force or _confirmed(resource, entries):
                filters = [resource.filter(entry) for entry in entries] or [resource.filter()]
                checked(admin.delete_acls(filters))


def _confirmed(resource: Resource, entries: Sequence[Entry]) -> bool:
    if entries:
        print(f"Are you sure you want to remove ACLs: \n {_listed(entries)}")
        print(f" from resource filter `{resource}`? (y/n)", flush=True)
    else:
        print(f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)", flush=True)
    return sys.stdin.readline().strip().lower() == "y"


# List.


def _list(options: argparse.Namespace) -> None:
    filters = [resource.filter() for resource in resources(options)] or [AclBindingFilter()]
    wanted = principals(options, "principal")
    found: Plan = {}
    with open_admin_of_either(options) as admin:
        for each in filters:
            for binding in admin.describe_acls(each):
                resource, entry = split_binding(binding)
                entries = found.setdefault(resource, [])
                if entry not in entries:
                    entries.append(entry)
    if not wanted:
        _print_acls(found)
    for principal in wanted:
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in entries if entry.principal == principal]
            for resource, entries in found.items()
        }
        _print_acls({resource: entries for resource, entries in own.items() if entries})


def _print_acls(plan: Plan) -> None:
    for resource in sorted(plan):
        print(f"Current ACLs for resource `{resource}`:\n{_listed(sorted(plan[resource]))}\n")
