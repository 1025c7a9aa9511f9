"""A fork server for the Python processes of a quick-start session on one machine.

Spark starts a Python process for every step of using a data source: to look it up, to create it, to plan a
read, to read, and one more for every streaming query. Each process starts Python and imports PySpark and
Arrow, one process after the other, 200 to 400 ms each. With `quick_start` one process, the *fork server*,
imports these modules while the JVM starts, and Spark's Python processes are forks of it, ready in a few
milliseconds. Every other session, and every cluster, uses Spark's own worker start.

    driver ──starts──▶ fork server ──forks──▶ pyspark.daemon …, streaming runners …
       │                     ▲
       └─▶ JVM ──starts──▶ client (one per process: sends its files, environment, arguments; waits)

The client is the process that Spark sees: it lives as long as the fork, exits with its exit code, and the
fork is terminated when the client is killed. If there is no server, or a process needs environment variables
that the server was not started with, the client replaces itself with the process, as without a fork server.
When the driver exits, the server forks no more processes, and exits after the last of them.
"""
