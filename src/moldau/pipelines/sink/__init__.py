"""Rows of Spark into topics, exactly once where a query asks for it.

`writers` is what Spark is given, `tasks` what happens in one task. `markers` and `identity` decide whether
a task of a batch was written before, `completeness` whether it got all of its rows. `producers` are kept
between the batches of a process, `pinning` keeps the cut of a batch into tasks as it was, `lost_input` says
what holds where its rows are not what they were. `options` and `columns` have the names and rules of Spark's
Kafka connector.
"""
