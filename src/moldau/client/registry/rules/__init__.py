"""Rules of data contracts: conditions, transforms and migrations of a schema's rule set (CEL, JSONATA)."""
