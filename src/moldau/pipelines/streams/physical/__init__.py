"""Stages as data frames: fused chains, and the operators that keep state. All that needs Spark."""
