"""Share groups at partition leaders (KIP-932): share partitions, sessions, fetches and acknowledgements."""
