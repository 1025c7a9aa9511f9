"""Moving averages of stock prices: the mean of the last five minutes of every stock, every minute.

    python examples/pipelines/moving_averages.py

Prices are JSON values with the stock as key, as in `examples/stock_prices.py`. A hopping window of five
minutes starts every minute; its average, lowest and highest price are written to `stock-averages` when it
closes.
"""

from __future__ import annotations

import json
import math
import sys

from common import create_topics, parser, place, send, some_hours_ago
from pyspark.sql import functions as f

from moldau import pipelines

MINUTE = 60_000
_START = some_hours_ago()
STOCKS = {"MOLD": 42.0, "ELBE": 17.5}


def price(stock: str, minute: int) -> float:
    return round(STOCKS[stock] + math.sin(minute / 3), 2)


def main() -> int:
    with place(parser(__doc__).parse_args()) as where:
        create_topics(where.bootstrap_servers, "stock-prices", "stock-averages")
        records = [
            (stock, {"stock": stock, "price": price(stock, minute)}, _START + minute * MINUTE)
            for minute in range(20)
            for stock in STOCKS
        ]
        # Event time advances only with records: one that is an hour later closes all windows.
        records.append(("END", {"stock": "END", "price": 0.0}, _START + 80 * MINUTE))
        send(where.bootstrap_servers, "stock-prices", records)
        spark = pipelines.session("moving-averages")
        prices = pipelines.stream_topic(spark, where.bootstrap_servers, "stock-prices").select(
            f.from_json(f.col("value").cast("string"), "stock string, price double").alias("p"), "timestamp"
        )
        windows = (
            prices.select("p.*", "timestamp")
            .withWatermark("timestamp", "1 minute")
            .groupBy(f.window("timestamp", "5 minutes", "1 minute"), "stock")
            .agg(
                f.round(f.avg("price"), 3).alias("average"),
                f.min("price").alias("lowest"),
                f.max("price").alias("highest"),
                f.count("*").alias("prices"),
            )
        )
        rows = windows.select(
            f.col("stock").alias("key"),
            f.to_json(
                f.struct(
                    "stock",
                    f.date_format("window.end", "HH:mm").alias("until"),
                    "average",
                    "lowest",
                    "highest",
                    "prices",
                )
            ).alias("value"),
        )
        spec = pipelines.QuerySpec(
            name="moving-averages",
            bootstrap_servers=where.bootstrap_servers,
            checkpoint=str(where.folder / "moving-averages"),
            topic="stock-averages",
            trigger={"availableNow": True},
        )
        pipelines.start(rows, spec).awaitTermination()
        found = pipelines.read_topic(spark, where.bootstrap_servers, "stock-averages").collect()
        averages = [json.loads(row["value"]) for row in found]
        for average in sorted(averages, key=lambda each: (each["stock"], each["until"])):
            if average["prices"] == 5:
                print("{stock} until {until}: {average:.3f} ({lowest} to {highest})".format(**average))
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
