"""Share groups on a node: sessions of members, and the partitions they are handed records from."""
