"""The metadata quorum: `kafka.server:type=raft-metrics`.

The JMX exporter's example rules make `kafka_server_raft_metrics_*` of it, Strimzi's make
`kafka_server_raftmetrics_*`; dashboards use both, so both are served.
"""

from __future__ import annotations

from typing import Final

from moldau.metrics.family import Family, counter, gauge

_SPELLINGS: Final = ("kafka_server_raft_metrics_", "kafka_server_raftmetrics_")


def _in_both(name: str, help_text: str) -> tuple[Family, ...]:
    return tuple(gauge(f"{prefix}{name}", help_text) for prefix in _SPELLINGS)


CURRENT_LEADER: Final = _in_both("current_leader", "Id of the active controller; -1 if unknown.")
CURRENT_EPOCH: Final = _in_both("current_epoch", "Epoch of the quorum.")
CURRENT_VOTE: Final = _in_both("current_vote", "Id that this node voted for in this epoch; -1 if none.")
HIGH_WATERMARK: Final = _in_both("high_watermark", "High watermark of the metadata log on this node.")
LOG_END_OFFSET: Final = _in_both("log_end_offset", "Log end offset of the metadata log on this node.")
VOTERS: Final = _in_both("number_of_voters", "Voters of the quorum.")
COMMIT_LATENCY: Final = _in_both(
    "commit_latency_avg",
    "Mean time in ms until decisions of the active controller are committed, in the last minute.",
)
ELECTION_LATENCY: Final = _in_both(
    "election_latency_avg", "Mean time in ms without a leader, of the last elections that this node has seen."
)
ELECTION_LATENCY_MAX: Final = _in_both(
    "election_latency_max", "Longest time in ms without a leader, of the last elections."
)
POLL_IDLE: Final = _in_both(
    "poll_idle_ratio_avg", "Share of the last minute in which the event loop used no processor, 0 to 1."
)
APPEND_RATE: Final = _in_both(
    "append_records_rate", "Records per second that this node, as the leader, appended in the last minute."
)
FETCH_RATE: Final = _in_both(
    "fetch_records_rate", "Records per second that this node fetched from the leader in the last minute."
)
_CHANNELS: Final = ("kafka_server_raft_channel_metrics_", "kafka_server_raftchannelmetrics_")
CHANNEL_REQUESTS: Final = tuple(
    counter(f"{prefix}request_total", "Requests to other nodes of the quorum.") for prefix in _CHANNELS
)
CHANNEL_RESPONSES: Final = tuple(
    counter(f"{prefix}response_total", "Responses of other nodes of the quorum.") for prefix in _CHANNELS
)
CHANNEL_BYTES_IN: Final = tuple(
    counter(f"{prefix}incoming_byte_total", "Bytes received from other nodes of the quorum.")
    for prefix in _CHANNELS
)
CHANNEL_BYTES_OUT: Final = tuple(
    counter(f"{prefix}outgoing_byte_total", "Bytes sent to other nodes of the quorum.")
    for prefix in _CHANNELS
)
STATE_INFO: Final = gauge(
    "kafka_server_raft_metrics_current_state_info", "1 for the role of this node.", ("state",)
)
STATE: Final = gauge(
    "kafka_server_raftmetrics_current_state", "1 for the role of this node.", ("current_state",)
)

FAMILIES: Final = (
    *CURRENT_LEADER,
    *CURRENT_EPOCH,
    *CURRENT_VOTE,
    *HIGH_WATERMARK,
    *LOG_END_OFFSET,
    *VOTERS,
    *COMMIT_LATENCY,
    *ELECTION_LATENCY,
    *ELECTION_LATENCY_MAX,
    *POLL_IDLE,
    *APPEND_RATE,
    *FETCH_RATE,
    *CHANNEL_REQUESTS,
    *CHANNEL_RESPONSES,
    *CHANNEL_BYTES_IN,
    *CHANNEL_BYTES_OUT,
    STATE_INFO,
    STATE,
)
