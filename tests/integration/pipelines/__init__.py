"""Pipelines without Spark: what the driver and the workers use of a real broker."""
