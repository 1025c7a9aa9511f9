"""The APIs that Moldau does not serve, and its intended differences from Apache Kafka, each with its reason.

An API without a handler must have a reason in `NOT_SERVED`. Every intended difference is in `DIFFERENCES`;
any other is a bug.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.protocol.api_keys import ApiKey


class Reason(NamedTuple):
    why: str
    keys: tuple[ApiKey, ...]


NOT_SERVED: tuple[Reason, ...] = ()


class Difference(NamedTuple):
    what: str
    why: str


DIFFERENCES: dict[str, tuple[Difference, ...]] = {
    "Producing and fetching": (
        Difference(
            "A batch with a consistent header (magic, length, CRC, counts, timestamps) is stored as "
            "received. Records that contradict the header are detected only where records are parsed "
            "anyway: in compacted topics, on recompression, and by the cleaner. Apache Kafka validates "
            "every record.",
            "Between producer and consumer a batch is opaque, so no cost depends on the number of records.",
        ),
        Difference(
            "A fetch response contains whole batches only. Apache Kafka fills it up with the beginning of "
            "the next batch, which clients discard.",
            "The incomplete batch would be sent in vain.",
        ),
        Difference(
            "The transactional id pattern of ListTransactions is an RE2 expression, not one of Java: "
            "look-around and back-references are rejected with INVALID_REGULAR_EXPRESSION.",
            "RE2 matches in linear time, so a pattern cannot block the node.",
        ),
    ),
    "Quotas": (
        Difference(
            "A client that exceeds the rate of its windows is throttled as in Apache Kafka, but continues "
            "with a fifth of its limit until its burst has left the windows, and afterwards gets exactly "
            "its limit. With the default windows and small requests it gets at most 1.27 times its limit in "
            "the first ten seconds. Apache Kafka throttles by the rate alone: from one ten seconds to the "
            "next, a client that always has data gets between a tenth and 1.6 times its limit.",
            "A limit that holds on average only is hard to plan with.",
        ),
        Difference(
            "Changed quotas end the running throttle times. In Apache Kafka a client waits for the throttle "
            "time that an old quota caused.",
            "A higher limit is set because clients wait.",
        ),
        Difference(
            "`request_percentage` is a share of the event loop: 100 is all of it. In Apache Kafka a broker "
            "has 100 for each of `num.network.threads` and `num.io.threads`. Work in the thread pool, such "
            "as reading from disk, does not count.",
            "A node has one thread for requests; the unit, a share of one thread's time, is the same.",
        ),
        Difference(
            "Requests between brokers and requests on controller listeners are not throttled. Apache Kafka "
            "exempts only some of them.",
            "A quota of all users would otherwise slow down the cluster itself.",
        ),
        Difference(
            "A batch larger than what a consumer may consume at once is delivered, and the consumer is "
            "throttled afterwards. In Apache Kafka the consumer never receives it. A member of a share "
            "group over its quota acquires no records; Apache Kafka acquires them and answers without them.",
            "A quota delays records; it does not withhold them.",
        ),
        Difference(
            "`max.connections` and `max.connection.creation.rate`: a connection above the limit is accepted "
            "and not read until there is a place for it; as many as `socket.listen.backlog.size` wait for a "
            "listener, more are closed. Apache Kafka leaves them in the accept queue.",
            "To a client it looks the same.",
        ),
    ),
    "Groups and transactions": (
        Difference(
            "FindCoordinator creates the internal topic that it needs and answers once the topic exists. "
            "Apache Kafka answers COORDINATOR_NOT_AVAILABLE meanwhile.",
            "The client would only retry.",
        ),
        Difference(
            "A transaction marker for a partition without a leader is written once the partition has one. "
            "Apache Kafka treats the partition as deleted and completes the transaction without the marker.",
            "Consumers with `read_committed` would wait at that partition forever.",
        ),
        Difference(
            "While their partition has fewer in-sync replicas than required, coordinators reject requests "
            "that must be stored at once with COORDINATOR_NOT_AVAILABLE. Apache Kafka's group coordinator "
            "does so after `offsets.commit.timeout.ms`.",
            "No change is stored after its request was answered with an error.",
        ),
        Difference(
            "A request to another broker fails as soon as the metadata shows that the broker is gone. "
            "Apache Kafka waits for `request.timeout.ms`.",
            "The new leader is known by then.",
        ),
        Difference(
            "A pending JoinGroup or SyncGroup is answered with REBALANCE_IN_PROGRESS if the same member "
            "sends another one, and with UNKNOWN_MEMBER_ID if the member leaves. Apache Kafka does not "
            "answer some of these requests.",
            "No client waits forever.",
        ),
        Difference(
            "OffsetFetch and the describe APIs see changes that are appended but not committed yet, and "
            "wait for the commit. Apache Kafka answers with the committed state.",
            "A client that reads after a commit request was sent sees that commit.",
        ),
        Difference(
            "A member of a streams group that reports other tasks than it is assigned gets its assignment "
            "again. Apache Kafka sends an assignment only once.",
            "A member that has lost a response would never learn of its tasks.",
        ),
        Difference(
            "A target assignment that was computed by a coordinator whose clock was ahead does not delay the "
            "next one. Apache Kafka waits until its own clock has caught up.",
            "A rebalance must not wait for hours because a clock was wrong.",
        ),
        Difference(
            "ListGroups finds streams groups in the state NotReady by that name, and by `not_ready`. Apache "
            "Kafka knows only the latter.",
            "The name is the one in its responses.",
        ),
    ),
    "The metadata quorum": (
        Difference(
            "Voters whose leader has exited or resigned start an election at once, in the order of their "
            "ids or of the leader's list, and grant pre-votes at once. Apache Kafka's voters wait for a "
            "timeout and reject votes until then. The rules that decide the election are the same.",
            "There is no reason to wait for a leader that is gone.",
        ),
        Difference(
            "A voter that starts requests pre-votes after 100 ms without a leader. Apache Kafka's waits for "
            "its election timeout first.",
            "A quorum whose voters all start has a leader at once.",
        ),
        Difference(
            "A leader that removed itself from the voters and stopped before another voter had the record "
            "becomes a candidate once more. In Apache Kafka no voter can be elected then.",
            "Its log is the longest, so a quorum of two would remain without a leader.",
        ),
        Difference(
            "A controller that does not learn the leader from any voter asks again after "
            "`controller.quorum.retry.backoff.ms`. Apache Kafka asks again at once.",
            "The voters are holding an election.",
        ),
        Difference(
            "One of several voters does not start if its `quorum-state` file cannot be read, or is missing "
            "although its log exists. Apache Kafka starts without the file if it is missing.",
            "A voter that has lost its vote could vote twice in an epoch (Raft §5.2).",
        ),
        Difference(
            "A message that names this node as the leader of an epoch in which it does not know it led is "
            "ignored. Apache Kafka's process exits.",
            "A peer still refers to its leadership before a restart; the node leads again in a later epoch "
            "only.",
        ),
    ),
    "Topics and metadata": (
        Difference(
            "A broker or controller whose process has exited is detected when its connections break and new "
            "ones are refused. Apache Kafka waits for the end of its session.",
            "Failover takes a fraction of a second instead of ten seconds.",
        ),
        Difference(
            "While a broker appears to have died, Metadata responses wait until its partitions have new "
            "leaders, at most two seconds; the dead broker remains listed for two more seconds.",
            "Clients request metadata as soon as their connections break. After a stale response, or one "
            "without the broker, librdkafka waits a second or two before it requests metadata again.",
        ),
        Difference(
            "Metadata for a topic that is created automatically contains the topic. Apache Kafka first "
            "answers LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION, and the client retries.",
            "The response waits for the creation, which takes a few milliseconds.",
        ),
        Difference(
            "A fetch session or a delayed fetch with the id of a deleted topic fails with UNKNOWN_TOPIC_ID, "
            "like any other fetch. Apache Kafka answers UNKNOWN_TOPIC_OR_PARTITION, or "
            "INCONSISTENT_TOPIC_ID once another topic of that name exists.",
            "The client named the topic by its id only; all three errors make clients refresh their "
            "metadata.",
        ),
        Difference(
            "A new topic can be written to as soon as CreateTopics is answered; a deleted one is unknown at "
            "once.",
            "The node applies a change before it answers.",
        ),
        Difference(
            "A CreatePartitions request for more than 10,000 partitions fails with POLICY_VIOLATION, as "
            "CreateTopics does in both.",
            "A single request must not occupy the node for minutes.",
        ),
        Difference(
            "Configurations altered on the controller's listener are validated as on a broker. Apache "
            "Kafka's controller accepts a null, a duplicate, a read-only or an invalid broker "
            "configuration, and resigns on an unknown operation.",
            "A tool with `--bootstrap-controller` deserves the same response.",
        ),
        Difference(
            "Quotas of the entity type `ip` accept addresses only; a host name is rejected instead of "
            "resolved.",
            "The controller decides without I/O.",
        ),
    ),
    "Invalid requests": (
        Difference(
            "Errors carry a message also where Apache Kafka sends only a code (Produce, DescribeProducers).",
            "A person may read it.",
        ),
        Difference(
            "Produce with null records fails with INVALID_RECORD; Apache Kafka never answers it. An unknown "
            "codec fails with UNSUPPORTED_COMPRESSION_TYPE; a batch that claims two gigabytes with "
            "INVALID_RECORD; an unknown isolation level, an unknown operation on configurations, or a topic "
            "without name and id with INVALID_REQUEST. Apache Kafka answers all of them with "
            "UNKNOWN_SERVER_ERROR.",
            "The code names the problem.",
        ),
        Difference(
            "ShareFetch answers an unknown topic id with UNKNOWN_TOPIC_ID for that topic; Apache Kafka "
            "fails the request with UNKNOWN_SERVER_ERROR. DescribeShareGroupOffsets answers at once for a "
            "partition that does not exist; Apache Kafka retries for half a minute first.",
            "The code names the problem, and no client waits in vain.",
        ),
        Difference(
            "FetchSnapshot answers an unknown snapshot, position or epoch with the specific error. Apache "
            "Kafka intends to, but fails with UNKNOWN_SERVER_ERROR.",
            "A follower can react to the specific error.",
        ),
        Difference(
            "A registration with an unknown security protocol fails with INVALID_REGISTRATION. Apache "
            "Kafka's active controller resigns.",
            "The request is wrong, not the controller.",
        ),
        Difference(
            "With INVALID_RECORD the log start offset is always -1; Apache Kafka returns it in some cases.",
            "No client uses it.",
        ),
        Difference(
            "A negative size limit of a fetch is treated as 0.",
            "The first batch is always returned.",
        ),
        Difference(
            "A topic that cannot be created automatically because its name collides with another one fails "
            "with INVALID_TOPIC_EXCEPTION in Metadata instead of being unknown.",
            "The client does not retry until its timeout.",
        ),
        Difference(
            "An invalid topic name in DescribeTopicPartitions is the error of that topic, not of the whole "
            "request.",
            "The other topics are described.",
        ),
        Difference(
            "CreateAcls with UNKNOWN, ANY or MATCH, and DeleteAcls with UNKNOWN, fail with INVALID_REQUEST "
            "for that ACL or filter. Apache Kafka closes the connection or fails with UNKNOWN_SERVER_ERROR.",
            "The other ACLs of the request are created or deleted.",
        ),
        Difference(
            "ElectLeaders with an unknown election type is rejected even without partitions.",
            "The request is invalid in both cases.",
        ),
    ),
    "TLS": (
        Difference(
            "Key and trust stores take effect when their files change, within seconds. Apache Kafka reads "
            "them when a config of the broker is altered. Both keep open connections.",
            "Certificates are often replaced by a program that knows nothing of the broker.",
        ),
        Difference(
            "An alteration that names the same file is refused, too, if the file cannot be used. Apache "
            "Kafka accepts it and logs the failure.",
            "The administrator learns of the failure from the command.",
        ),
        Difference(
            "A handshake must be complete within 30 s, and at most 500 are in progress; then the oldest is "
            "closed. Apache Kafka keeps such connections for `connections.max.idle.ms`.",
            "Clients that are not known must not use up the sockets and the memory of a node.",
        ),
        Difference(
            "All certificates of a PEM chain on one line are used, and PEM keys may be encrypted with any "
            "algorithm of OpenSSL. Apache Kafka finds the last certificate, and fails with PBES2 on Java 17.",
            "Properties files are often written so.",
        ),
        Difference(
            "Suites of TLS 1.3 in `ssl.cipher.suites` enable all of them. `ssl.engine.factory.class` is "
            "refused; `ssl.provider`, `ssl.keymanager.algorithm`, `ssl.trustmanager.algorithm` and "
            "`ssl.secure.random.implementation` have no effect.",
            "OpenSSL does the work, without Java classes.",
        ),
    ),
    "Logins": (
        Difference(
            "An unknown user of SCRAM receives a challenge like a known one, and the login fails with the "
            "last message. Apache Kafka refuses the first message.",
            "Otherwise any client can find out which users exist.",
        ),
        Difference(
            "Connections whose clients have not logged in with SASL, or not completed a TLS handshake, are "
            "limited to 2,000 of a node, 60 s, and 128 MiB of buffers together; the oldest or largest are "
            "closed. Apache Kafka keeps them for `connections.max.idle.ms`.",
            "Clients that are not known must not use up the sockets and the memory of a node.",
        ),
        Difference(
            "A nonce of SCRAM with more than 1,024 characters is refused, and so are names and versions of "
            "client software (ApiVersions) with more than 1,000. Apache Kafka keeps any length.",
            "They are kept for clients that are not known.",
        ),
        Difference(
            "The connection of a failed login is closed 50 ms after the response.",
            "kafka-python ignores a response that arrives together with the end of the connection.",
        ),
        Difference(
            "An alteration of a config of one listener (`listener.name.x.`) is refused with INVALID_REQUEST "
            "if it has no effect while the broker runs: apart from stores and connection limits all of them, "
            "among them `sasl.jaas.config`, and those of a listener that does not exist. Apache Kafka "
            "accepts and ignores them.",
            "An administrator who removes a user or a mechanism must not be told that it is done.",
        ),
        Difference(
            "OAUTHBEARER: `sasl.oauthbearer.jwks.endpoint.url` selects signed tokens also without "
            "`sasl.server.callback.handler.class`. Apache Kafka accepts unsecured tokens then.",
            "A listener with an identity provider must not accept tokens that anyone can make.",
        ),
        Difference(
            "OAUTHBEARER: the keys of the JWKS endpoint are fetched with the first login, not at the start, "
            "and a token with an unknown key id waits for the early refresh. A file of keys is read again as "
            "well.",
            "A node starts while the identity provider is down, and the first token after a rotation of "
            "keys is accepted.",
        ),
        Difference(
            "OAUTHBEARER: after a refused token, the only message accepted is the client's "
            "acknowledgement. Apache Kafka takes another token.",
            "RFC 7628 allows nothing else.",
        ),
        Difference(
            "Kafka's own classes are accepted in `sasl.server.callback.handler.class`, "
            "`sasl.login.callback.handler.class` and `sasl.oauthbearer.jwt.*.class`; other Java classes, "
            "`sasl.login.class` and JwtBearerJwtRetriever are refused.",
            "Moldau does not run Java classes.",
        ),
        Difference(
            "GSSAPI: the Kerberos library of the system gets and renews tickets; "
            "`sasl.kerberos.kinit.cmd`, `sasl.kerberos.min.time.before.relogin` and "
            "`sasl.kerberos.ticket.renew.*` have no effect. Clients of Kafka 0.9, which send a token without "
            "a handshake, are not served.",
            "The library does it without a thread of its own; Kafka 4 serves no other API to such clients.",
        ),
    ),
    "Authorization": (
        Difference(
            "The response to CreateAcls and DeleteAcls waits, up to a second, until the broker that sends "
            "it enforces the change.",
            "A client may use a permission immediately.",
        ),
        Difference(
            "The audit log (`kafka.authorizer.logger`) always has `resourceRefCount = 1` for a resource that "
            "a request names. Apache Kafka counts the partitions in Produce and Fetch.",
            "The count would cost more than the decision.",
        ),
        Difference(
            "Decisions about resources that a request does not name are not logged; Apache Kafka logs them "
            "at TRACE.",
            "Python's loggers have no such level.",
        ),
        Difference(
            "Controller listeners open before the ACLs are loaded, all others after that, whatever "
            "`early.start.listeners` contains.",
            "A broker without metadata could serve no request.",
        ),
    ),
    "Users and tokens": (
        Difference(
            "AlterUserScramCredentials and CreateDelegationToken are answered once the broker has the user "
            "or the token. Apache Kafka answers earlier, and a login right after the answer may fail.",
            "A client may use what it has created.",
        ),
        Difference(
            "Controllers serve DescribeUserScramCredentials and DescribeDelegationToken. Apache Kafka's "
            "announce them and fail with UNKNOWN_SERVER_ERROR.",
            "An announced API can be used.",
        ),
    ),
    "Starting, crashing, full disks": (
        Difference(
            "A node that was killed serves again as soon as its logs are recovered. Apache Kafka waits "
            "until the session of the previous process has expired (`broker.session.timeout.ms`).",
            "The lock on the log directory proves that the previous process is gone.",
        ),
        Difference(
            "A node does not start with a damaged metadata log, and names the file, unless the damage is an "
            "incomplete write at the end. Apache Kafka truncates the log at the first invalid batch.",
            "The records after the damage were committed; losing topics silently is worse than not starting.",
        ),
        Difference(
            "A log directory that was full is used again when there is space. Apache Kafka takes it offline "
            "until a restart.",
            "The incomplete write is truncated, so the log is intact.",
        ),
        Difference(
            "Damage in inactive segments is also searched for in the background, not only by readers and "
            "the cleaner.",
            "It is better found before the data is needed.",
        ),
        Difference(
            "A partition folder without `partition.metadata` is opened as that of the topic with its name. "
            "Apache Kafka renames it to `-stray`.",
            "Its records are all that is left of the partition.",
        ),
        Difference(
            "A node does not start if a Java class as authorizer, policy, principal builder or remote store "
            "is configured; an authorizer (`authorizer.class.name=package.module:Class`) or remote store of "
            "your own is a Python class.",
            "Ignoring these settings would be unsafe.",
        ),
        Difference(
            "A variable of a config provider (`${file:PATH:KEY}`) without a value is refused by nodes and "
            "tools. Apache Kafka uses the text of the variable as the value.",
            "A password must not be replaced by the name of its place.",
        ),
        Difference(
            "Settings that concern only the Java implementation, such as `num.network.threads` and "
            "`num.io.threads`, are accepted and described but have no effect.",
            "The same properties file starts both.",
        ),
    ),
    "Retention and compaction": (
        Difference(
            "Topics with `compact,delete` lose old segments every `log.retention.check.interval.ms`, like "
            "those with `delete`. In Apache Kafka the cleaner threads delete them.",
            "Retention does not depend on the cleaner.",
        ),
        Difference(
            "Compaction runs in a separate process, which exits when there is nothing to do.",
            "The process of the broker keeps serving meanwhile.",
        ),
    ),
    "Tiered storage": (
        Difference(
            "Remote log metadata are always stored in `__remote_log_metadata`: "
            "`remote.log.metadata.manager.class.name` cannot be changed, and "
            "`remote.log.metadata.manager.listener.name`, "
            "`rlmm.config.remote.log.metadata.initialization.retry.*` and the `rlmm.config.` settings of "
            "Java's clients have no effect.",
            "Brokers read and write the topic themselves, over the inter-broker listener.",
        ),
        Difference(
            "`remote.log.manager.thread.pool.size` and `follower.fetch.last.tiered.offset.enable` have no "
            "effect: a new replica starts where its leader's local log begins.",
            "More specific settings replace the former; with the latter, a new replica could not serve what "
            "its leader has on the local disk.",
        ),
        Difference(
            "For tiered topics, `kafka-topics --describe` and `kafka-log-dirs` also show where each tier "
            "begins and ends. Apache Kafka's do not.",
            "The size of the local log says little about the topic.",
        ),
    ),
    "Tools": (
        Difference(
            "`--help` prints to standard output and exits with 0; in Apache Kafka it prints to standard "
            "error and exits with 1.",
            "Asking for help is not an error.",
        ),
        Difference(
            "An invalid command line is reported in one sentence with a hint instead of the whole help.",
            "The sentence names the problem.",
        ),
        Difference(
            "`kafka-consumer-groups` exits with 1 if no broker can be reached, or if a value is not the "
            "number it must be. Apache Kafka's prints the error and exits with 0, as both do for groups "
            "that do not exist or have members.",
            "Scripts must notice that nothing was done.",
        ),
        Difference(
            "The formatters of internal topics print one line per record. Apache Kafka's print all records "
            "on one line.",
            "Lines can be read, searched and counted.",
        ),
        Difference(
            "`kafka-console-consumer --include` discovers new topics within ten seconds, also in a group. "
            "Apache Kafka's discovers them every five minutes (`metadata.max.age.ms`).",
            "A user at a terminal does not wait that long.",
        ),
        Difference(
            "`kafka-consumer-perf-test` without `--group` assigns partitions directly. Apache Kafka's joins "
            "a random group.",
            "The tool measures consuming.",
        ),
        Difference(
            "`kafka-metadata-shell` also reads the folder of a node (`--directory`, even while it runs) and "
            "running controllers (`--controllers`). `/brokers`, `/topics/orders/0` and others are shortcuts "
            "into `/image`. The default entity of a quota is shown as `user(<default>)`. Apache Kafka's may "
            "answer before it has read the whole file.",
            "Users mostly need the current metadata.",
        ),
        Difference(
            "`kafka-storage format --add-scram` prints the bootstrap metadata without the keys of users, and "
            "no message of the tools contains a password. Apache Kafka's prints both.",
            "The output of a tool ends up in logs.",
        ),
        Difference(
            "`kafka-delegation-tokens --describe` without `--owner-principal` lists all tokens that the user "
            "may describe, as its help says. Apache Kafka's lists none.",
            "An empty list of owners stands for no owner in the request.",
        ),
        Difference(
            "`kafka-reassign-partitions --generate` places the replicas of a partition on different "
            "machines, not only on different racks.",
            "It places replicas as the controller places those of new partitions.",
        ),
        Difference(
            "`kafka-features upgrade --release-version` skips features that the cluster does not support.",
            "An update is all or nothing, and would be rejected because of them.",
        ),
        Difference(
            "`kafka-e2e-latency` lets a fetch wait for the record. Apache Kafka's polls without waiting "
            "(`fetch.max.wait.ms=0`).",
            "Consumers wait, and constant polling would slow down what is measured.",
        ),
        Difference(
            "`kafka-server-start -daemon` returns when the node is ready, or with 1 and the reason if it "
            "does not start.",
            "Scripts do not have to wait and check.",
        ),
        Difference(
            "`kafka-server-stop` stops nodes of Moldau only, not of Apache Kafka.",
            "Both may run on one machine.",
        ),
    ),
}
