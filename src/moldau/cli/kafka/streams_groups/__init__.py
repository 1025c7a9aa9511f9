"""`kafka-streams-groups`."""
