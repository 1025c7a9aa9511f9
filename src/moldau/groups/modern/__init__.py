"""What consumer and share groups have in common: epochs, subscriptions and server-side assignment."""
