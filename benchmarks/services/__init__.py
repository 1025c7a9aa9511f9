"""The schema registry and the REST proxy under load."""
