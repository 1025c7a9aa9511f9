"""Where tasks run: as long-lived Spark tasks (`spark`), or in threads of the worker (`threads`).

A host starts tasks, passes their reports to the worker's event loop, and stops them. `channel` is the
connection between the worker and tasks in other processes.
"""
