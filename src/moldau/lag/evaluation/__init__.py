"""The pure core: the history of offsets, and the verdict over it. No I/O; time is an argument."""
