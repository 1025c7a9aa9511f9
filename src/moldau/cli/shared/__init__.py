"""Parts that tools and commands share: arguments, connections, exit codes, Java's text formats."""
