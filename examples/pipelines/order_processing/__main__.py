"""Order processing: a REST service, three parallel checks, an aggregator, e-mails, and a view to query.

    pip install starlette uvicorn
    python examples/pipelines/order_processing            # process some orders, then exit
    python examples/pipelines/order_processing --serve    # serve your own orders until Ctrl-C

`topology.py` runs on Spark, `rest.py` is the REST service, `mailer.py` the last step.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import topology as steps
from common import Place, create_topics, parser, place, send, wait_for
from mailer import mailing
from rest import OrdersService, serving

from moldau.pipelines.streams import KafkaStreams

CUSTOMERS = {
    name: {"name": name.title(), "email": f"{name}@example.org"} for name in ("alice", "bob", "carol")
}
STOCK = {"book": 10, "lamp": 1}
#: Customer, product, quantity, price, and the expected state.
Order = tuple[str, str, int, int, str]
ORDERS: tuple[Order, ...] = (
    ("alice", "book", 2, 20, "VALIDATED"),
    ("bob", "lamp", 1, 35, "VALIDATED"),
    ("carol", "lamp", 1, 35, "FAILED"),
    ("alice", "book", 0, 20, "FAILED"),
    ("bob", "book", 1, 9000, "FAILED"),
)


def main() -> int:
    options = parser(__doc__)
    options.add_argument(
        "--port", type=int, default=0, help="port of the REST service; 0 takes any free port"
    )
    options.add_argument("--serve", action="store_true", help="run until Ctrl-C")
    chosen = options.parse_args()
    with place(chosen) as where:
        if not prepare(where) and not chosen.serve:
            raise SystemExit(
                f"The topic {steps.ORDERS} already exists on this cluster, and its orders would be counted, "
                "too. Use another cluster, or omit --bootstrap-server to start one."
            )
        streams = KafkaStreams(
            steps.topology(),
            {
                "application.id": "order-processing",
                "bootstrap.servers": where.bootstrap_servers,
                "state.dir": str(where.folder / "state"),
            },
        )
        print(streams.topology.describe())
        with streams:
            store = streams.store(steps.VIEW)
            service = OrdersService(where.bootstrap_servers, lambda: dict(store.all()))
            mails = where.folder / "mails.jsonl"
            with serving(service, chosen.port) as address, mailing(where.bootstrap_servers, mails):
                print(f"The orders service is at {address}/orders; e-mails are written to {mails}")
                serve() if chosen.serve else demonstrate(address, mails)
    return 0


def prepare(where: Place) -> bool:
    """Create the topics and fill the tables; return whether the topic of orders is new."""
    made = create_topics(where.bootstrap_servers, steps.ORDERS, steps.VALIDATIONS, steps.EMAILS)
    create_topics(where.bootstrap_servers, steps.INVENTORY, steps.CUSTOMERS, compacted=True)
    send(where.bootstrap_servers, steps.CUSTOMERS, ((name, each, None) for name, each in CUSTOMERS.items()))
    send(where.bootstrap_servers, steps.INVENTORY, ((name, amount, None) for name, amount in STOCK.items()))
    return steps.ORDERS in made


def serve() -> None:
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        print("Stopping.")


def demonstrate(address: str, mails: Path) -> None:
    # Concurrent orders are processed in any order, so the second order of a lamp is placed later.
    for orders in (ORDERS[:2], ORDERS[2:]):
        place_orders(address, orders)
    found = _request(f"{address}/orders?state=VALIDATED&text=lamp")
    print(f"Validated orders of lamps: {[order['customer'] for order in found]}")
    wait_for("all mails", lambda: len(mails.read_text().splitlines()) == len(ORDERS))
    for line in mails.read_text().splitlines():
        print("mail to {to}: {subject}".format(**json.loads(line)))


def place_orders(address: str, orders: Sequence[Order]) -> None:
    """Place orders concurrently and check the final state of each."""
    placed = []
    for customer, product, quantity, price, expected in orders:
        body = {"customer": customer, "product": product, "quantity": quantity, "price": price}
        placed.append((_request(f"{address}/orders", body)["id"], expected))
    for order_id, expected in placed:
        order = _request(f"{address}/orders/{order_id}?wait=240")
        print(f"{order_id} {order['state']:9} {', '.join(order.get('failed_checks', []))}")
        if order["state"] != expected:
            raise SystemExit(f"order {order_id} should be {expected}: {order}")


def _request(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=270) as response:
        return json.load(response)


if __name__ == "__main__":
    sys.exit(main())
