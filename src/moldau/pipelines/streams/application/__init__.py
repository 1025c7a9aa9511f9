"""Running applications: internal topics, Spark queries, checkpoints, interactive queries."""
