"""Apache Iceberg tables, written with `pyiceberg`."""
