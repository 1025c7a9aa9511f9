"""Delta Lake tables, written with `deltalake` (delta-rs)."""
