"""Files in object stores and folders: sinks and sources for S3, Google Cloud Storage, Azure and local
folders.

`storage` opens a store, `formats` reads and writes files, `partitioning` decides folders, `sink` and
`source` are the connectors; `connectors` binds them to the names and settings of each store.
"""
