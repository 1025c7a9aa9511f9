"""The records of a topic: the table, one record, searches and new records, writing, files."""
