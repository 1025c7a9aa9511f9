"""Write rows of Spark to topics, with exactly-once delivery for streaming queries.

`writers` are the classes that Spark calls, `tasks` writes the rows of one task. `task_context` identifies the
task and checks that it received all rows, `markers` detects whether an earlier attempt has written them.
`producers` are reused between the batches of a process. `query_listener` keeps the partitioning of a batch
the same when it is replayed. `options` and `columns` follow the names and rules of Spark's Kafka connector.
`dead_letters` turns failed records into rows for a dead-letter topic.
"""
