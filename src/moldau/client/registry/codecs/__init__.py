"""Values ↔ bytes by a schema and the texts of its references: no registry, no frame, no rules."""
