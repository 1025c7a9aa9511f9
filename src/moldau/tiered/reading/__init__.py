"""Reading segments of the remote tier. Blocking; runs in threads."""
