"""What control batches hold: transaction markers, leader changes, voters, the ends of a snapshot."""

from __future__ import annotations

from moldau.base.ids import Uuid
from moldau.protocol.schema import Message, Struct, array, int16, int32, int64, string, struct, uint16, uuid


class ControlRecordTypeSchema(Message, versions="0"):
    type: int = int16("0+")


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int = int32("0+")


class LeaderChangeVoter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("1+")


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[LeaderChangeVoter] = array(LeaderChangeVoter, "0+")
    granting_voters: list[LeaderChangeVoter] = array(LeaderChangeVoter, "0+")


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    kraft_version: int = int16("0+")


class Endpoint(Struct):
    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class KRaftVersionFeature(Struct):
    min_supported_version: int = int16("0+")
    max_supported_version: int = int16("0+")


class Voter(Struct):
    voter_id: int = int32("0+")
    voter_directory_id: Uuid = uuid("0+")
    endpoints: list[Endpoint] = array(Endpoint, "0+")
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature, "0+")


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = int16("0+")
    voters: list[Voter] = array(Voter, "0+")
