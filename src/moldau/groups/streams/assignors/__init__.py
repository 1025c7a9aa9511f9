"""Task assignors: which member runs a task, and which members keep a copy of its state."""
