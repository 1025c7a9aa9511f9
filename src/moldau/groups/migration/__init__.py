"""Online migration between the classic and the consumer protocol (KIP-848)."""
