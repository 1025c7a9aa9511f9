"""Stages as Spark data frames: fused chains and stateful operators. Everything here needs Spark."""
