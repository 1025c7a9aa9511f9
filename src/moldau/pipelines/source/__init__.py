"""Topics as Spark sees them: which partitions, from where to where, cut into which tasks.

`options` reads what the user wrote, in the words of Spark's Kafka connector. `subscription` says which
partitions that means, `positions` where to begin and to end. `offsets` is the JSON that Spark keeps in
checkpoints, `planning` turns two of them into tasks, `loss` words what is not there any more. All of these
are pure. `watch` asks the cluster, `query_name` and `progress` keep a consumer group up to date, and the two
readers are what Spark calls: in a process of their own on the driver, and `read` in the tasks.
"""
