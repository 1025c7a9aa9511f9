"""docs/COMPATIBILITY.md, made from the table of APIs; `python -m tools.compatibility` prints it.

What is served comes from the table that the node itself announces. What is not served must have its reason
here, and a test compares the document with the file, so neither can grow old unseen. Every intended
difference to Apache Kafka is in `DIFFERENCES`; any other is a bug.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from moldau.protocol.apis import APIS, Api
from moldau.server.dispatch.apis import ServedApi, served_apis
from moldau.server.roles import BROKER, CONTROLLER
from tools import compatibility_suites

_INTRODUCTION = """\
# Compatibility

Moldau speaks the protocol of Apache Kafka 4.3. This page lists the APIs and versions it serves, the clients
it is checked with, what it does not serve yet and why, and every known difference. It is printed by
`python -m tools.compatibility` from the table that the node itself uses, and a test keeps it current.
`kafka-broker-api-versions` shows the same of a running node.
"""

_CLIENTS = """\
## Clients and tools

Each is run unchanged against a node that it knows only by its address.

| client | checked by |
|---|---|
| confluent-kafka (librdkafka) | `make test` |
| kafka-python | `make test` |
| aiokafka | `make test` |
| kcat | `make test`, where it is installed |
| Kafka's Java client, 3.9 and 4.x | `make interop` |
| Kafka's own Java tools | `make interop` |
| Kafka Streams, at least once and exactly once | `make interop` |
| franz-go | `make interop` |

Producing (all codecs, idempotent by default), consuming by assignment and in groups of the classic protocol
(eager, cooperative, static members) and of the consumer protocol (both assignors, regular expressions, moving
from one protocol to the other and back), committed offsets, transactions in both flows
(`transaction.version` 0 to 2) with group offsets inside, offsets by position and time, topics and
configurations.
"""


class Reason(NamedTuple):
    why: str
    keys: tuple[int, ...]


NOT_SERVED = (
    Reason(
        "Groups of the streams protocol are not there yet.",
        (88, 89),
    ),
    Reason(
        "Logins are not there yet.",
        (17, 36, 38, 39, 40, 41, 50, 51),
    ),
    Reason(
        "Clients' telemetry needs a receiver; Apache Kafka does not announce it without one either.", (71, 72)
    ),
)


class Difference(NamedTuple):
    what: str
    why: str


DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    "Producing and fetching": (
        Difference(
            "A batch whose header is consistent (magic, length, CRC, counts, timestamps) is stored as it "
            "came; records inside that disagree with it are found only where records are parsed anyway: "
            "compacted topics, recompression, the cleaner. Apache Kafka looks at every record.",
            "A batch is opaque between producer and consumer: nothing on that way costs per record.",
        ),
        Difference(
            "A fetch brings whole batches. Apache Kafka fills the answer up with the beginning of the next "
            "batch, which clients throw away.",
            "It would be sent for nothing.",
        ),
        Difference(
            "`max.connections`: a connection above the limit is accepted and waits, unread, until another "
            "one ends. For one on the inter-broker listener Apache Kafka closes the connection of another "
            "listener that was idle longest.",
            "No connection in use is ever cut off.",
        ),
        Difference(
            "Quotas are kept and described, and not enforced: no answer is delayed, and no throttle time "
            "reported.",
            "Not there yet.",
        ),
        Difference(
            "The pattern of ListTransactions is RE2's, not Java's: look-around and back-references are "
            "INVALID_REGULAR_EXPRESSION.",
            "A pattern must not keep the node busy.",
        ),
    ),
    "Groups": (
        Difference(
            "FindCoordinator makes the internal topic it needs and answers when it is there; Apache Kafka "
            "answers COORDINATOR_NOT_AVAILABLE meanwhile.",
            "The client would only ask again.",
        ),
        Difference(
            "A marker for a partition that has no leader just now is brought when it has one. Apache Kafka "
            "takes the partition for deleted and completes the transaction without it.",
            "Readers of what is committed would wait there for ever.",
        ),
        Difference(
            "Coordinators refuse at once what they would have to store while their partition has fewer "
            "in-sync replicas than it needs. Apache Kafka's answer COORDINATOR_NOT_AVAILABLE, too, but for "
            "groups after `offsets.commit.timeout.ms`.",
            "Nothing is stored that nobody was told of.",
        ),
        Difference(
            "A request to another broker is given up when the metadata says that the broker is gone. Apache "
            "Kafka waits for `request.timeout.ms`.",
            "The new leader is known by then.",
        ),
        Difference(
            "A JoinGroup or SyncGroup that waits is answered REBALANCE_IN_PROGRESS when the same member "
            "sends another, and UNKNOWN_MEMBER_ID when the member leaves. Apache Kafka leaves some of these "
            "without an answer.",
            "Nobody waits for ever.",
        ),
        Difference(
            "What was appended and is not committed yet is seen by OffsetFetch and the describing calls, "
            "which then wait for the commit. Apache Kafka answers with what was committed before.",
            "Who asks after a commit was sent gets what was sent.",
        ),
    ),
    "The metadata quorum": (
        Difference(
            "Voters whose leader has ended, or said that it resigns, ask each other for votes at once, in "
            "the order of their ids or of the leader's list, and promise theirs. Apache Kafka's voters wait "
            "for a timeout and refuse until then. Who may lead is decided by the same rules.",
            "A leader that is gone need not be waited for.",
        ),
        Difference(
            "A voter that starts asks for promises of votes after a tenth of a second without a leader. "
            "Apache Kafka's waits for its election timeout first.",
            "A quorum that starts as a whole has its leader at once.",
        ),
        Difference(
            "A leader that removed itself from the voters and stopped before anybody else had that record "
            "stands for election once more. In Apache Kafka nobody can be elected then.",
            "Its log is the longest, so a quorum of two would be without a leader for ever.",
        ),
        Difference(
            "A controller that nobody can tell who leads asks again after "
            "`controller.quorum.retry.backoff.ms`. Apache Kafka asks again at once.",
            "The others have an election to hold.",
        ),
        Difference(
            "One of several voters whose `quorum-state` is missing though its log is not, or cannot be read, "
            "does not start. Apache Kafka begins without it when it is missing.",
            "A voter that forgot its vote could vote twice in an epoch.",
        ),
        Difference(
            "A message that says that this node leads its epoch, which it does not remember, is ignored. "
            "Apache Kafka's process ends.",
            "Somebody still takes it for the leader it was; it leads again in a later epoch only.",
        ),
    ),
    "Topics and metadata": (
        Difference(
            "A broker or controller whose process has ended is noticed when its connections break and new "
            "ones are refused. Apache Kafka waits for the end of its session.",
            "Failover takes a fraction of a second instead of ten.",
        ),
        Difference(
            "Metadata asked for while a broker seems to have died waits, two seconds at most, until its "
            "partitions have new leaders; the dead broker is listed for two seconds more.",
            "Clients ask at once when their connections break. An answer from before, or one that the broker "
            "is missing in, makes librdkafka wait a second or two until it asks again.",
        ),
        Difference(
            "Metadata for a topic that is created by asking for it comes with the topic. Apache Kafka "
            "answers LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION first, and the client asks again.",
            "The answer waits for the creation, which takes a few milliseconds.",
        ),
        Difference(
            "A fetch session or a waiting fetch that names a deleted topic by its id is told "
            "UNKNOWN_TOPIC_ID, as any other fetch is. Apache Kafka says UNKNOWN_TOPIC_OR_PARTITION there, "
            "and INCONSISTENT_TOPIC_ID once there is another topic of that name.",
            "The id is all the client asked for; to clients all three mean: ask for metadata.",
        ),
        Difference(
            "A new topic can be written to as soon as CreateTopics is answered, a deleted one is unknown "
            "at once.",
            "The node applies a change before it answers.",
        ),
        Difference(
            "CreatePartitions to more than 10,000 partitions in one request is POLICY_VIOLATION, as "
            "CreateTopics is in both.",
            "One request must not keep the node busy for minutes.",
        ),
        Difference(
            "`kafka-storage format` leaves the features that are not served at level 0: the streams "
            "version. Levels asked for with `--feature` are written as asked.",
            "Clients choose their protocols by these levels.",
        ),
        Difference(
            "Settings changed at the controller's own listener are checked as at a broker's. Apache Kafka's "
            "controller takes a null, the same setting twice, a read-only or impossible broker setting, and "
            "steps down over an operation that does not exist.",
            "A tool with `--bootstrap-controller` deserves the same answer.",
        ),
        Difference(
            "Quotas by `ip` take addresses; a host name is refused instead of being looked up.",
            "The controller decides without any I/O.",
        ),
    ),
    "Requests that make no sense": (
        Difference(
            "An error comes with a sentence, also where Apache Kafka sends a code alone (Produce, "
            "DescribeProducers).",
            "A person may read it.",
        ),
        Difference(
            "A produce request without records (null) is INVALID_RECORD; Apache Kafka never answers it. An "
            "unknown codec is UNSUPPORTED_COMPRESSION_TYPE; a batch that claims two gigabytes is "
            "INVALID_RECORD; an isolation level or a way to alter a config that does not exist, or a topic "
            "without name and id, is INVALID_REQUEST. Apache Kafka answers UNKNOWN_SERVER_ERROR to all of "
            "them.",
            "The code says what is wrong.",
        ),
        Difference(
            "A ShareFetch that names a topic id that does not exist is told UNKNOWN_TOPIC_ID for it; Apache "
            "Kafka fails the request with UNKNOWN_SERVER_ERROR. DescribeShareGroupOffsets of a partition "
            "that does not exist is answered at once; Apache Kafka tries for half a minute first.",
            "The code says what is wrong, and nobody waits for what cannot come.",
        ),
        Difference(
            "A FetchSnapshot of a snapshot, position or epoch that does not exist is told which. Apache "
            "Kafka means to, fails, and says UNKNOWN_SERVER_ERROR.",
            "A follower can do something about it.",
        ),
        Difference(
            "A listener with a security protocol that does not exist is INVALID_REGISTRATION. Apache Kafka's "
            "active controller resigns.",
            "The one who asks is wrong, not the controller.",
        ),
        Difference(
            "Next to INVALID_RECORD the log start offset is always -1; Apache Kafka tells it in some cases.",
            "No client looks at it.",
        ),
        Difference(
            "A fetch with a negative limit is answered as one with the limit 0.",
            "The first batch always comes.",
        ),
        Difference(
            "A topic that asking for it cannot create, because its name collides with another, is "
            "INVALID_TOPIC_EXCEPTION in Metadata instead of unknown.",
            "The client need not ask until it gives up.",
        ),
        Difference(
            "A bad topic name in DescribeTopicPartitions is that topic's error and not the whole request's.",
            "The other topics are described.",
        ),
        Difference(
            "An election of a type that does not exist is refused, also for no partitions.",
            "It is wrong either way.",
        ),
    ),
    "Starting, crashing, full disks": (
        Difference(
            "A node that was killed serves again as soon as its logs are recovered. Apache Kafka waits "
            "until the session of the broker's former life has timed out (`broker.session.timeout.ms`).",
            "The folder's lock proves that the former process is gone.",
        ),
        Difference(
            "A damaged metadata log stops the start with a sentence that names it, unless the "
            "damage is an unfinished write at its end. Apache Kafka cuts the log at the first bad batch.",
            "What is behind the damage was committed; losing topics silently is worse than not starting.",
        ),
        Difference(
            "A log directory that was full works again when there is room. Apache Kafka takes it offline "
            "until a restart.",
            "The write that did not fit is cut off, so nothing is wrong with the log.",
        ),
        Difference(
            "Damage in a closed segment is also looked for in the background, not only by readers and the "
            "cleaner.",
            "It is better found before it is needed.",
        ),
        Difference(
            "A partition's folder without `partition.metadata` is opened as that of the topic with its name. "
            "Apache Kafka sets it aside as `-stray`.",
            "Its records are all that is left of the partition.",
        ),
        Difference(
            "SSL and SASL listeners, an authorizer and tiered storage stop the start.",
            "Ignoring them would be unsafe.",
        ),
        Difference(
            "Settings that only the Java implementation has a use for, such as `num.network.threads` and "
            "`num.io.threads`, are accepted and described, and have no effect.",
            "The same properties file starts both.",
        ),
    ),
    "Retention and compaction": (
        Difference(
            "Topics with `compact,delete` lose old segments at `log.retention.check.interval.ms`, as "
            "those with `delete` do. In Apache Kafka the cleaner's threads do it, when they come by.",
            "Retention does not depend on the cleaner.",
        ),
        Difference(
            "Compaction runs in a process of its own that ends when there is nothing to do.",
            "The broker's process goes on serving meanwhile.",
        ),
    ),
    "Tools": (
        Difference(
            "`--help` goes to standard output and ends with 0; Apache Kafka's goes to standard error and "
            "ends with 1.",
            "Asking for help is not a mistake.",
        ),
        Difference(
            "A mistake on the command line is one sentence and a hint instead of the whole help.",
            "The sentence is what one is looking for.",
        ),
        Difference(
            "`kafka-consumer-groups` ends with 1 when no broker can be reached, or when a number is asked "
            "for and something else is given. Apache Kafka's tells the error and ends with 0, as both do "
            "about groups that do not exist or are at work.",
            "Scripts must notice that nothing was done.",
        ),
        Difference(
            "The formatters of internal topics print a line for each record. Apache Kafka's put all records "
            "into one line.",
            "Lines can be read, searched and counted.",
        ),
        Difference(
            "`kafka-console-consumer --include` notices new topics within ten seconds, also in a group. "
            "Apache Kafka's asks every five minutes (`metadata.max.age.ms`).",
            "Who watches a terminal does not wait that long.",
        ),
        Difference(
            "`kafka-consumer-perf-test` without `--group` reads the partitions directly. Apache Kafka's "
            "makes up a group.",
            "Reading is what is measured.",
        ),
        Difference(
            "`kafka-metadata-shell` also reads the folder of a node (`--directory`, while it runs) and "
            "follows running controllers (`--controllers`); `/brokers`, `/topics/orders/0` and others are "
            "short ways into `/image`; the default entity of a quota is shown as `user(<default>)`. Apache "
            "Kafka's may answer before it has read the whole file.",
            "What is wanted is mostly the metadata as it is now.",
        ),
        Difference(
            "`kafka-reassign-partitions --generate` puts the replicas of a partition on different machines "
            "as well as racks.",
            "It places them as the controller places new partitions.",
        ),
        Difference(
            "`kafka-features upgrade --release-version` leaves out features that the cluster does not know.",
            "An update is all or nothing, and would be refused because of them.",
        ),
        Difference(
            "`kafka-e2e-latency` lets a fetch wait for the record. Apache Kafka's asks again and again "
            "(`fetch.max.wait.ms=0`).",
            "Consumers wait, and asking all the time would slow down what is measured.",
        ),
        Difference(
            "`kafka-server-start -daemon` ends when the node is ready, and with 1 and the reason when it "
            "is not.",
            "Scripts need not wait and look themselves.",
        ),
        Difference(
            "`kafka-server-stop` stops Moldau's nodes only, not those of Apache Kafka.",
            "Both may run on one machine.",
        ),
    ),
}


def document() -> str:
    """The whole page."""
    suites = compatibility_suites.section()
    parts = [_INTRODUCTION, *_served(), _CLIENTS, *suites, *_not_served(), *_differences()]
    return "\n".join(parts)


def unexplained() -> list[Api]:
    """APIs that are neither served nor have a reason for it; there must be none."""
    served = {*served_apis(BROKER), *served_apis(CONTROLLER)}
    known = {key for reason in NOT_SERVED for key in reason.keys} | served
    return [api for key, api in APIS.items() if key not in known]


def _served() -> Iterator[str]:
    yield "## APIs served to clients\n"
    yield _table(served_apis(BROKER).values())
    yield (
        "Produce is announced from version 0 on, as Apache Kafka does, because librdkafka compresses only\n"
        "then; 0 to 2 are refused.\n"
    )
    yield "## APIs served on the controller's listener\n"
    yield _table(served_apis(CONTROLLER).values())


def _table(apis: Iterable[ServedApi]) -> str:
    rows = ["| key | API | versions | |", "|---:|---|---|---|"]
    for served in sorted(apis, key=lambda each: each.api.key):
        api = served.api
        note = f"{api.max_version} is unstable in 4.3 and left out" if api.latest_unstable else ""
        rows.append(
            f"| {api.key} | {api.name} | {_versions(served.min_version, served.max_version)} | {note} |"
        )
    return "\n".join(rows) + "\n"


def _versions(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _not_served() -> Iterator[str]:
    yield "## APIs not served yet\n\nThey are not announced, so clients do not try them.\n"
    rows = ["| APIs | why |", "|---|---|"]
    for reason in NOT_SERVED:
        names = ", ".join(f"{APIS[key].name} ({key})" for key in sorted(reason.keys))
        rows.append(f"| {names} | {reason.why} |")
    yield "\n".join(rows) + "\n"


def _differences() -> Iterator[str]:
    yield "## Known differences to Apache Kafka 4.3\n"
    yield "What is not listed here and differs is a bug; please report it.\n"
    for area, differences in DIFFERENCES.items():
        lines = [f"### {area}\n", *(f"- {each.what} *{each.why}*" for each in differences)]
        yield "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(document())
