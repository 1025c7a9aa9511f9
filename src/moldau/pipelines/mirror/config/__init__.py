"""Configuration of mirrors: mm2.properties, replication policies and filters."""
