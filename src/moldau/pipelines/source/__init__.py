"""Read topics into Spark: which partitions, which offsets, split into which tasks.

`options` parses the user's options, which follow Spark's Kafka connector; `subscription` selects partitions,
`positions` the starting and ending offsets. `offsets` is the JSON that Spark stores in checkpoints,
`planning` turns two of them into tasks, `topic_changes` and `data_loss` describe what the cluster has
deleted. These modules are pure. `cluster` queries the cluster, `resolution` turns positions into offsets,
`consumer_group` commits progress. Spark calls `batch_reader` and `stream_reader` in a process on the driver,
and `tasks` in the workers.

`topic_follower`, `late_records` and `late_topics` are used by streams and SQL: a topic that is read
incrementally, and the records that a watermark has dropped.
"""
