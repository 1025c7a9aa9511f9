"""Share groups (KIP-932) as pure state machines: share partitions and the share coordinator."""
