"""Pipeline definitions in YAML files."""
