"""Common parts of consumer and share groups: epochs, subscriptions and server-side assignment."""
