"""Consumer lag by trend: collects offsets of all groups, judges their course, and reports it."""
