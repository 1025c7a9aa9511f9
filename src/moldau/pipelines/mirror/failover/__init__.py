"""Status of flows, and the move of consumer groups to the target cluster and back."""
