"""The transaction coordinator: what it knows of each transactional id, and how it decides."""
