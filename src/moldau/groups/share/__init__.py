"""Share groups (KIP-932) at the group coordinator: membership, assignment and initialized partitions."""
