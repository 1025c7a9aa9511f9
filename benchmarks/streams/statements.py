"""The programs of `StreamsPrograms.java` in SQL: `python -m benchmarks.streams.statements`.

Arguments: bootstrap servers, application id, state directory, program, prefix of the topics.
"""

from __future__ import annotations

import sys
import time

from benchmarks.streams.session import started
from moldau.pipelines.sql import SqlEngine

#: The statements of every program; `P` stands for the prefix of the topics.
STATEMENTS = {
    "stateless": """
        CREATE STREAM IF NOT EXISTS events (user VARCHAR KEY, item VARCHAR, amount BIGINT)
          WITH (topic='P-in', format='DELIMITED');
        CREATE STREAM IF NOT EXISTS chosen WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT item, CAST(amount * 2 AS VARCHAR) AS doubled FROM events WHERE amount >= 50
          PARTITION BY item;
    """,
    "words": """
        CREATE STREAM IF NOT EXISTS lines (line VARCHAR)
          WITH (topic='P-in', format='KAFKA', key_format='NONE');
        CREATE STREAM IF NOT EXISTS words
          WITH (topic='P-words', format='KAFKA', key_format='NONE', partitions=4)
          AS SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM lines;
        CREATE TABLE IF NOT EXISTS counts WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT word, COUNT(*) AS n FROM words GROUP BY word;
    """,
    "windows": """
        CREATE STREAM IF NOT EXISTS events (user VARCHAR KEY, event VARCHAR)
          WITH (topic='P-in', format='KAFKA');
        CREATE TABLE IF NOT EXISTS minutes WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT user, COUNT(*) AS n FROM events
          WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 1 MINUTE) GROUP BY user;
    """,
    "streams": """
        CREATE STREAM IF NOT EXISTS one (id VARCHAR KEY, event VARCHAR) WITH (topic='P-in', format='KAFKA');
        CREATE STREAM IF NOT EXISTS two (id VARCHAR KEY, event VARCHAR)
          WITH (topic='P-other', format='KAFKA');
        CREATE STREAM IF NOT EXISTS pairs WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT one.id, CONCAT(one.event, '+', two.event) AS pair
          FROM one JOIN two WITHIN 10 SECONDS GRACE PERIOD 1 MINUTE ON one.id = two.id;
    """,
    "lookup": """
        CREATE STREAM IF NOT EXISTS events (id VARCHAR KEY, event VARCHAR)
          WITH (topic='P-in', format='KAFKA');
        CREATE TABLE IF NOT EXISTS known (id VARCHAR PRIMARY KEY, name VARCHAR)
          WITH (topic='P-other', format='KAFKA');
        CREATE STREAM IF NOT EXISTS named WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT events.id, CONCAT(events.event, '+', known.name) AS value
          FROM events JOIN known ON events.id = known.id;
    """,
    "totals": """
        CREATE TABLE IF NOT EXISTS orders (id VARCHAR PRIMARY KEY, owner VARCHAR, amount BIGINT)
          WITH (topic='P-in', key_format='KAFKA', value_format='DELIMITED');
        CREATE TABLE IF NOT EXISTS totals WITH (topic='P-out', format='KAFKA', partitions=4)
          AS SELECT owner, SUM(amount) AS total FROM orders GROUP BY owner;
    """,
}


def main() -> int:
    servers, application, folder, program, prefix = sys.argv[1:]
    settings = {"auto.offset.reset": "earliest", "trigger": "100 milliseconds"}
    spark = started(application)
    catalog = f"{application}-catalog"
    with SqlEngine(spark, servers, state_dir=folder, settings=settings, catalog_topic=catalog) as sql:
        for _ in sql.execute(STATEMENTS[program].replace("P-", f"{prefix}-")):
            pass
        while True:
            time.sleep(60)


if __name__ == "__main__":
    sys.exit(main())
