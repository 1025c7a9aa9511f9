"""Programs that generate parts of the documentation. They belong to the repository, not to the wheel."""
