"""The loop of a task: read → transform → convert → produce, or consume → convert → transform → put → commit.

Plain Python without Spark and without an event loop, so that it runs in any process or thread.
"""
