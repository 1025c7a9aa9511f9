"""File formats: records to the bytes of a file, and files to records."""
