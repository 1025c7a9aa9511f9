"""From a frame to a handler: listeners, the API table, the dispatcher."""
