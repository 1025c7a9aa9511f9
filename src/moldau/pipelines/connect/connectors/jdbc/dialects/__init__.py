"""What differs between databases: connections, catalogs, SQL and types."""
