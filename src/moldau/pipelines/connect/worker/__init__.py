"""The worker: which connectors and tasks run here, and how.

`task` is the loop of a task in plain Python; `hosting` runs tasks in Spark, or in threads; `herder` decides
what runs; `group` is the membership of distributed workers. Only `hosting` imports Spark, when it starts.
"""
