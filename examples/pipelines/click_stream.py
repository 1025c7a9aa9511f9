"""Click stream: visits of a site as session windows that end after half an hour without a click.

    python examples/pipelines/click_stream.py

Clicks of a user within thirty minutes of each other are one visit. Each visit is written once it has ended,
with its duration, number of pages, first and last page. Time is event time, so yesterday's log yields the
same visits as the live clicks did.
"""

from __future__ import annotations

import sys
from typing import Any

from common import create_topics, parser, place, send, some_hours_ago

from moldau import pipelines

MINUTE = 60_000
_START = some_hours_ago()
#: User, minute, page.
CLICKS = (
    ("ann", 0, "/"),
    ("ann", 3, "/shoes"),
    ("bea", 5, "/"),
    ("ann", 20, "/cart"),
    ("bea", 40, "/hats"),
    ("ann", 90, "/"),
    ("bea", 55, "/cart"),
    ("ann", 100, "/paid"),
    ("the end", 300, "/"),
)
VISITS = """
    SELECT user AS key, to_json(struct(
        user, date_format(session.start, 'HH:mm') AS began,
        cast((unix_timestamp(session.end) - unix_timestamp(session.start)) / 60 - 30 AS int) AS minutes,
        pages, first_page, last_page)) AS value
    FROM visits
"""


def main() -> int:
    with place(parser(__doc__).parse_args()) as where:
        create_topics(where.bootstrap_servers, "clicks", "visits")
        clicks: list[tuple[str | None, Any, int | None]] = [
            (user, {"user": user, "page": page}, _START + minute * MINUTE) for user, minute, page in CLICKS
        ]
        send(where.bootstrap_servers, "clicks", clicks)
        spark = pipelines.session("click-stream")
        raw = pipelines.stream_topic(spark, where.bootstrap_servers, "clicks")
        parsed = raw.selectExpr("from_json(string(value), 'user string, page string') AS click", "timestamp")
        timed = parsed.select("click.*", "timestamp").withWatermark("timestamp", "10 minutes")
        timed.createOrReplaceTempView("clicks")
        spark.sql("""
            SELECT user, session_window(timestamp, '30 minutes') AS session, count(*) AS pages,
                   min_by(page, timestamp) AS first_page, max_by(page, timestamp) AS last_page
            FROM clicks GROUP BY user, session_window(timestamp, '30 minutes')
        """).createOrReplaceTempView("visits")
        spec = pipelines.QuerySpec(
            name="visits",
            bootstrap_servers=where.bootstrap_servers,
            checkpoint=str(where.folder / "visits"),
            topic="visits",
            trigger={"availableNow": True},
        )
        pipelines.start(spark.sql(VISITS), spec).awaitTermination()
        for row in pipelines.read_topic(spark, where.bootstrap_servers, "visits").orderBy("value").collect():
            print(row["value"].decode())
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
