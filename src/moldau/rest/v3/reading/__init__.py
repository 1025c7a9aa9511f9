"""Reading records with v3, as a stream: of a topic, of a partition, or as a member of a group."""
