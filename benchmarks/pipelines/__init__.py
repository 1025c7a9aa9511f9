"""Comparison of Moldau's Spark connector with Spark's own: `python -m benchmarks.pipelines`."""
