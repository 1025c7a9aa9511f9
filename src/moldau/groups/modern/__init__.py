"""Common parts of consumer, share and streams groups: epochs, subscriptions and server-side assignment."""
