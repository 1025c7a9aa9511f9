"""kafka-dump-log: print and verify segments, indexes, producer snapshots and the metadata log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from moldau.cli.kafka.dump_log import decoders
from moldau.cli.kafka.dump_log.decoders import Decoder
from moldau.cli.kafka.dump_log.files import Inconsistencies, SegmentFile
from moldau.cli.kafka.dump_log.indexes import (
    dump_offset_index,
    dump_snapshot,
    dump_time_index,
    dump_txn_index,
)
from moldau.cli.kafka.dump_log.records import WHOLE_FILE, LogOptions, dump_log
from moldau.cli.kafka.dump_log.remote_metadata import remote_log_metadata
from moldau.cli.shared.arguments import ToolParser, require
from moldau.cli.shared.tool import run_tool, warn

_STRING = "StringDecoder"


def main(argv: Sequence[str] | None = None) -> int:
    return run_tool(_parser, _execute, argv)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-dump-log")
    parser.option(
        "--files",
        "FILES",
        "REQUIRED: .log, .checkpoint, .index, .timeindex, .txnindex or .snapshot files, comma-separated.",
    )
    parser.flag("--print-data-log", "Print the keys and values of records; implied by decoder options.")
    parser.flag("--deep-iteration", "Print each record of a batch, not only the batch.")
    parser.flag("--skip-record-metadata", "Print only the keys and values of records.")
    parser.flag("--verify-index-only", "Verify indexes against the log without printing them.")
    parser.flag("--index-sanity-check", "Check indexes only as a broker does when it starts.")
    parser.option(
        "--max-bytes", "BYTES", "Read at most this many bytes of a log.", type=int, default=WHOLE_FILE
    )
    parser.option(
        "--max-message-size",
        "BYTES",
        "Size of the largest batch in bytes (5242880 by default).",
        type=int,
        default=5 * 1024 * 1024,
    )
    parser.flag("--offsets-decoder", "Decode records of __consumer_offsets.")
    parser.flag("--transaction-log-decoder", "Decode records of __transaction_state.")
    parser.flag("--cluster-metadata-decoder", "Decode records of __cluster_metadata.")
    parser.flag("--share-group-state-decoder", "Decode records of __share_group_state.")
    parser.flag("--remote-log-metadata-decoder", "Decode records of __remote_log_metadata.")
    parser.option(
        "--key-decoder-class",
        "CLASS",
        "Decoder of keys: StringDecoder (the default), IntegerDecoder or LongDecoder.",
        nargs="?",
        const=_STRING,
    )
    parser.option("--value-decoder-class", "CLASS", "Decoder of values.", nargs="?", const=_STRING)
    return parser


def _execute(options: argparse.Namespace) -> None:
    require(options, "files")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    log_options = _log_options(options)
    inconsistencies = Inconsistencies()
    for path in options.files.split(","):
        print(f"Dumping {path}")
        _dump(SegmentFile(path), options, log_options, inconsistencies)
    sys.stdout.flush()
    inconsistencies.report()


def _log_options(options: argparse.Namespace) -> LogOptions:
    decoder = _decoder(options)
    chosen = decoder is not None
    print_data = options.print_data_log or chosen
    return LogOptions(
        options.deep_iteration or print_data,
        print_data,
        options.skip_record_metadata,
        options.max_bytes,
        decoder or decoders.plain_decoder(_STRING, _STRING),
    )


def _decoder(options: argparse.Namespace) -> Decoder | None:
    if options.offsets_decoder:
        return decoders.consumer_offsets
    if options.transaction_log_decoder:
        return decoders.transaction_state
    if options.cluster_metadata_decoder:
        return decoders.cluster_metadata
    if options.share_group_state_decoder:
        return decoders.share_group_state
    if options.remote_log_metadata_decoder:
        return remote_log_metadata
    if options.key_decoder_class or options.value_decoder_class:
        return decoders.plain_decoder(
            options.key_decoder_class or _STRING, options.value_decoder_class or _STRING
        )
    return None


def _dump(
    file: SegmentFile, options: argparse.Namespace, log_options: LogOptions, inconsistencies: Inconsistencies
) -> None:
    suffix = file.name[file.name.rfind(".") :] if "." in file.name else ""
    if suffix in (".log", ".checkpoint"):
        dump_log(file, log_options, inconsistencies)
    elif suffix == ".index":
        dump_offset_index(
            file,
            inconsistencies,
            sanity_only=options.index_sanity_check,
            verify_only=options.verify_index_only,
            max_message_size=options.max_message_size,
        )
    elif suffix == ".timeindex":
        dump_time_index(
            file,
            inconsistencies,
            sanity_only=options.index_sanity_check,
            verify_only=options.verify_index_only,
        )
    elif suffix == ".snapshot":
        dump_snapshot(file)
    elif suffix == ".txnindex":
        dump_txn_index(file)
    else:
        warn(f"Ignoring unknown file {file.path}")
