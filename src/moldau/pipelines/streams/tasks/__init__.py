"""The stateful operators that Spark has no operator for, as plain Python without Spark.

A task is one partition: it is given the records of a batch in the order in which Kafka Streams would take
them and keeps its state in maps from bytes to bytes. `physical/tasks.py` runs it inside Spark.
"""
