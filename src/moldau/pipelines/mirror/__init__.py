"""Mirroring between clusters, with the configuration, topics and record formats of Kafka's MirrorMaker 2.

Rooms, lowest first: `config` reads mm2.properties, `records` and `translation` are pure, `copy` copies
batches, `flows` does everything around the copy (topics, configs, ACLs, heartbeats, checkpoints, group
offsets), `run` hosts both on an event loop or on Spark, `failover` moves groups between clusters.
"""
