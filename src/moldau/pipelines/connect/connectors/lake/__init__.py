"""Tables from topics: sinks for Apache Iceberg and Delta Lake.

`rows` turns records into Arrow columns; `task` decides when to write and keeps delivery exactly once;
`iceberg` and `delta` commit. The first line of the contract between them: a commit adds rows and the
offsets after them at once, or neither (see `store`).
"""
