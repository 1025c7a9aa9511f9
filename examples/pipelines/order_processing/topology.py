"""The processing of an order as one Kafka Streams topology.

    orders ──► details, fraud, inventory ──► order-validations ──► aggregator ──► orders (VALIDATED or FAILED)
                                                                                    └─► e-mails, and the view

The steps communicate only through topics. The three checks run in parallel and write their findings; the
aggregator waits for all three and writes the order with its new state; the e-mail step looks up the customer.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moldau.pipelines.streams import (
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    Materialized,
    Processor,
    Produced,
    Record,
    Repartitioned,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Topology,
)

ORDERS, VALIDATIONS, EMAILS = "orders", "order-validations", "e-mails"
INVENTORY, CUSTOMERS = "warehouse-inventory", "customers"
VIEW = "orders-view"
CHECKS = ("details", "fraud", "inventory")
FRAUD_LIMIT = 2000
_RESERVED, _SPENT = "reserved-stock", "spent-by-customer"

Json = dict[str, Any]


def topology() -> Topology:
    builder = StreamsBuilder()
    orders = builder.stream(ORDERS, Consumed.with_("string", "json"))
    created = orders.filter(lambda _, order: order["state"] == "CREATED")
    _write(created.map_values(check_details))
    _write(check_fraud(builder, created))
    _write(check_inventory(builder, created))
    decided = aggregate(builder, created)
    decided.to(ORDERS, Produced.with_("string", "json"))
    tell_customers(builder, orders.filter(lambda _, order: order["state"] != "CREATED"))
    orders.to_table(materialized=Materialized(Serdes.string(), Serdes.json(), VIEW))
    return builder.build()


def _write(findings: KStream) -> None:
    findings.to(VALIDATIONS, Produced.with_("string", "json"))


def _finding(check: str, passed: bool) -> Json:
    return {"check": check, "passed": passed}


def check_details(order: Json) -> Json:
    """Check the order by itself."""
    return _finding("details", order["quantity"] > 0 and order["price"] >= 0 and bool(order["product"]))


class Spending(Processor):
    """Fraud check: limit the total of each customer."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.spent = context.get_state_store(_SPENT)

    def process(self, record: Record) -> None:
        order = record.value
        total = (self.spent.get(record.key) or 0) + order["price"] * order["quantity"]
        passed = total <= FRAUD_LIMIT
        if passed:
            self.spent.put(record.key, total)
        self.context.forward(record.with_key(order["id"]).with_value(_finding("fraud", passed)))


def check_fraud(builder: StreamsBuilder, created: KStream) -> KStream:
    builder.add_state_store(Stores.key_value_store(_SPENT, Serdes.string(), Serdes.json()))
    by_customer = created.select_key(lambda _, order: order["customer"])
    return by_customer.repartition(_json("orders-by-customer")).process(Spending, _SPENT)


class Reserving(Processor):
    """Inventory check: reserve products that are in stock and not yet reserved."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.reserved = context.get_state_store(_RESERVED)

    def process(self, record: Record) -> None:
        order, stock = record.value["order"], record.value["stock"]
        reserved = self.reserved.get(record.key) or 0
        passed = reserved + order["quantity"] <= stock
        if passed:
            self.reserved.put(record.key, reserved + order["quantity"])
        self.context.forward(record.with_key(order["id"]).with_value(_finding("inventory", passed)))


def check_inventory(builder: StreamsBuilder, created: KStream) -> KStream:
    builder.add_state_store(Stores.key_value_store(_RESERVED, Serdes.string(), Serdes.json()))
    stock = builder.table(INVENTORY, Consumed.with_("string", "json"))
    by_product = created.select_key(lambda _, order: order["product"])
    with_stock = by_product.repartition(_json("orders-by-product")).left_join(
        stock,
        lambda order, amount: {"order": order, "stock": amount or 0},
        joined=Joined.with_("string", "json", "json"),
    )
    return with_stock.repartition(_json("orders-with-stock")).process(Reserving, _RESERVED)


def aggregate(builder: StreamsBuilder, created: KStream) -> KStream:
    """Return the order with its new state once all checks are complete."""
    findings = builder.stream(VALIDATIONS, Consumed.with_("string", "json"))
    verdicts = findings.group_by_key(Grouped.with_("string", "json")).aggregate(
        dict,
        lambda _, finding, so_far: {**so_far, finding["check"]: finding["passed"]},
        materialized=Materialized(Serdes.string(), Serdes.json(), "verdicts"),
    )
    complete = verdicts.to_stream().filter(lambda _, verdict: len(verdict) == len(CHECKS))
    return complete.join(
        created,
        decide,
        JoinWindows.of_time_difference_and_grace(timedelta(hours=1), timedelta(0)),
        StreamJoined.with_("string", "json", "json"),
    )


def decide(verdict: Json, order: Json) -> Json:
    failed = sorted(check for check, passed in verdict.items() if not passed)
    return {**order, "state": "FAILED" if failed else "VALIDATED", "failed_checks": failed}


def tell_customers(builder: StreamsBuilder, decided: KStream) -> None:
    customers = builder.global_table(CUSTOMERS, Consumed.with_("string", "json"))
    mails = decided.join(customers, _mail, key_selector=lambda _, order: order["customer"])
    mails.to(EMAILS, Produced.with_("string", "json"))


def _mail(order: Json, customer: Json) -> Json:
    verdict = "is on its way" if order["state"] == "VALIDATED" else "cannot be delivered"
    return {"to": customer["email"], "subject": f"Your order {order['id']} {verdict}", "order": order["id"]}


def _json(name: str) -> Repartitioned:
    return Repartitioned(Serdes.string(), Serdes.json(), name=name)
