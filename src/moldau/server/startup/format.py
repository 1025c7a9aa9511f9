"""Formats the folders of a node, as `kafka-storage format` and `moldau dev` do.

Every folder gets `bootstrap.checkpoint` with the initial feature levels and users, and `meta.properties`.
The quorum is either static (`controller.quorum.voters`) or dynamic; the metadata folder of a dynamic quorum
also gets a snapshot with its initial voters. Formatted folders are never changed. `meta.properties` is
written last, so that a folder is formatted completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from moldau.base.clock import Clock
from moldau.base.ids import Randomness, format_uuid, random_uuid
from moldau.config.broker.config import BrokerConfig
from moldau.config.definition import ConfigError
from moldau.config.quorum_voters import DynamicVoter, parse_dynamic_voters
from moldau.metadata.features import METADATA_VERSION, SCRAM_SUPPORTED, metadata_version_name
from moldau.metadata.records import MetadataRecord
from moldau.quorum.bootstrap import bootstrap_records, write_bootstrap, write_initial_voters
from moldau.raft.voters import Voter, VoterEndpoint, VoterSet
from moldau.server.startup.format_features import FormatError, choose_levels, describe_bootstrap
from moldau.server.startup.meta_properties import (
    Folders,
    MetaProperties,
    UnusableFolder,
    check_folders,
    load_folders,
    write_meta_properties,
)
from moldau.storage.disk.disk import Disk, make_durable_dirs

__all__ = ["FormatError", "FormatOptions", "format_storage", "is_formatted"]


class FormatOptions(NamedTuple):
    """The options of `kafka-storage format`; the defaults format a single-node cluster."""

    #: None: generate one.
    cluster_id: str | None = None
    #: Start a dynamic quorum with this node as its only voter; None: unless static voters are configured.
    standalone: bool | None = None
    #: `id@host:port:directory,...`, the initial voters of a dynamic quorum.
    initial_controllers: str | None = None
    #: This node joins an existing dynamic quorum.
    no_initial_controllers: bool = False
    #: Skip formatted folders instead of failing.
    ignore_formatted: bool = False
    release_version: str | None = None
    features: Mapping[str, int] = {}
    #: SCRAM credentials of the form `SCRAM-SHA-256=[name=alice,password=secret]`.
    scram_credentials: Sequence[str] = ()


def is_formatted(disk: Disk, config: BrokerConfig) -> bool:
    """Return whether the metadata folder of the node is formatted."""
    return config.metadata_log_dir in load_folders(disk, config.directories).formatted


def format_storage(
    disk: Disk,
    clock: Clock,
    randomness: Randomness,
    config: BrokerConfig,
    options: FormatOptions | None = None,
    report: Callable[[str], None] | None = None,
) -> None:
    """Format the unformatted folders of the node; `report` receives the output of Kafka's tool."""
    _Formatter(disk, clock, randomness, config, options or FormatOptions(), report or _discard).run()


def _discard(line: str) -> None:
    return


class _Bootstrap(NamedTuple):
    metadata_version: int
    records: list[MetadataRecord]


class _Formatter:
    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        randomness: Randomness,
        config: BrokerConfig,
        options: FormatOptions,
        report: Callable[[str], None],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._randomness = randomness
        self._config = config
        self._options = options
        self._report = report

    def run(self) -> None:
        options = self._options
        voters = self._initial_voters()
        dynamic = not self._config.quorum_voters
        levels = choose_levels(options.release_version, options.features, dynamic=dynamic)
        bootstrap = _Bootstrap(levels[METADATA_VERSION], [*bootstrap_records(levels), *self._users(levels)])
        cluster_id = options.cluster_id
        if cluster_id == "":
            raise FormatError("The cluster id is empty; `kafka-storage random-uuid` makes one.")
        try:
            folders = load_folders(self._disk, self._config.directories)
            cluster_id = check_folders(folders, self._config.node_id, cluster_id)
        except UnusableFolder as error:
            raise FormatError(str(error)) from error
        self._check_formatted(folders)
        if not folders.unformatted:
            self._report("All of the log directories are already formatted.")
            return
        self._format(folders, cluster_id or format_uuid(random_uuid(self._randomness)), voters, bootstrap)

    def _users(self, levels: Mapping[str, int]) -> list[MetadataRecord]:
        credentials = self._options.scram_credentials
        if credentials and levels[METADATA_VERSION] < SCRAM_SUPPORTED:
            oldest = metadata_version_name(SCRAM_SUPPORTED)
            raise FormatError(f"SCRAM is only supported in metadata.version {oldest} or later.")
        if not credentials:
            return []
        from moldau.server.startup.scram_users import scram_record

        return [scram_record(text, self._randomness) for text in credentials]

    def _initial_voters(self) -> tuple[DynamicVoter, ...]:
        """Return the initial voters of a dynamic quorum; none if it is static or already exists."""
        config, options = self._config, self._options
        static = bool(config.quorum_voters)
        standalone = options.standalone
        if standalone is None:
            standalone = not (static or options.initial_controllers or options.no_initial_controllers)
        if static and (standalone or options.initial_controllers):
            raise FormatError(
                "You cannot specify controller.quorum.voters and format the node with "
                "--initial-controllers or --standalone. If you want to use dynamic quorum, please remove "
                "controller.quorum.voters and specify controller.quorum.bootstrap.servers instead."
            )
        if standalone:
            return (self._standalone_voter(),)
        if options.initial_controllers is not None:
            return self._given_voters(options.initial_controllers)
        if not static and not options.no_initial_controllers and "controller" in config.process_roles:
            raise FormatError(
                "Because controller.quorum.voters is not set on this controller, you must specify one of the "
                "following: --standalone, --initial-controllers, or --no-initial-controllers."
            )
        return ()

    def _standalone_voter(self) -> DynamicVoter:
        if "controller" not in self._config.process_roles:
            raise FormatError("You can only use --standalone on a controller.")
        listener = self._config.advertised_controller_listeners[0]
        directory_id = random_uuid(self._randomness)
        return DynamicVoter(self._config.node_id, directory_id, listener.host or "localhost", listener.port)

    def _given_voters(self, text: str) -> tuple[DynamicVoter, ...]:
        try:
            return parse_dynamic_voters(text)
        except ConfigError as error:
            raise FormatError(f"--initial-controllers: {error.sentence}") from error

    def _check_formatted(self, folders: Folders) -> None:
        if folders.formatted and not self._options.ignore_formatted:
            raise FormatError(
                f"Log directory {next(iter(folders.formatted))} is already formatted. Use "
                "--ignore-formatted to ignore this directory and format the others."
            )
        for directory in folders.failed:
            self._report(f"I/O error trying to read log directory {directory}. Ignoring...")
        if folders.failed and not folders.formatted and not folders.unformatted:
            reasons = ", ".join(f"{path} ({reason})" for path, reason in folders.failed.items())
            raise FormatError(f"No available log directories to format: {reasons}")

    def _format(
        self, folders: Folders, cluster_id: str, voters: tuple[DynamicVoter, ...], bootstrap: _Bootstrap
    ) -> None:
        self._report(describe_bootstrap(bootstrap.metadata_version, bootstrap.records))
        metadata = self._config.metadata_log_dir
        for directory in sorted(folders.unformatted, key=lambda each: (each != metadata, each)):
            is_metadata = directory == metadata
            self._report(
                f"Formatting {self._kind_of_directory(is_metadata, voters)} {directory} with "
                f"metadata.version {metadata_version_name(bootstrap.metadata_version)}."
            )
            try:
                self._format_directory(directory, cluster_id, voters if is_metadata else (), bootstrap)
            except OSError as error:
                reason = error.strerror or str(error)
                raise FormatError(f"Error while formatting {directory}: {reason}") from error

    def _format_directory(
        self, directory: str, cluster_id: str, voters: tuple[DynamicVoter, ...], bootstrap: _Bootstrap
    ) -> None:
        make_durable_dirs(self._disk, directory)
        write_bootstrap(self._disk, self._clock, directory, bootstrap.records)
        own = [voter.directory_id for voter in voters if voter.node_id == self._config.node_id]
        directory_id = own[0] if own else random_uuid(self._randomness)
        if voters:
            listener = self._config.controller_listener_names[0]
            voter_set = VoterSet.of(
                Voter(voter.node_id, voter.directory_id, (VoterEndpoint(listener, voter.host, voter.port),))
                for voter in voters
            )
            write_initial_voters(self._disk, self._clock, directory, voter_set)
        properties = MetaProperties(1, cluster_id, self._config.node_id, directory_id)
        write_meta_properties(self._disk, self._clock, directory, properties)

    def _kind_of_directory(self, is_metadata: bool, voters: tuple[DynamicVoter, ...]) -> str:
        if not is_metadata:
            return "data directory"
        if not voters:
            return "metadata directory"
        is_voter = any(voter.node_id == self._config.node_id for voter in voters)
        return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"
