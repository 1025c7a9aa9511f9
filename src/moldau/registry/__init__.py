"""The schema registry: schemas and their versions, compatibility, and the topic that stores them."""
