"""The stateful operators that Spark does not have, in plain Python without Spark.

A task is one partition: it receives the records of a batch in the order in which Kafka Streams would process
them, and keeps its state in maps from bytes to bytes. `physical/tasks.py` runs tasks inside Spark.
"""
