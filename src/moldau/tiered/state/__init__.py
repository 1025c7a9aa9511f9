"""The state of the remote tier, and every decision about it. Pure."""
