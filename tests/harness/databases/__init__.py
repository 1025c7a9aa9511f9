"""Private servers of databases, from the packages of the system."""
