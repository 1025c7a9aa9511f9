"""Rules of data contracts: conditions and transforms that a schema's rule set names (CEL, CEL_FIELD)."""
