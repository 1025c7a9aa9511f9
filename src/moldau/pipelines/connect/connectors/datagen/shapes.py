"""The shapes of Confluent's quick starts: the schema of each, its key and its random values."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from moldau.pipelines.connect.data.schema import FLOAT64, INT32, INT64, STRING, Schema, struct
from moldau.pipelines.connect.data.struct import Struct


class Shape(NamedTuple):
    schema: Schema
    key_field: str
    generate: Callable[[Random, int], Struct]


def _struct(name: str, **fields: Schema) -> Schema:
    return struct(fields, name=name)


_USERS = _struct("ksql.users", registertime=INT64, userid=STRING, regionid=STRING, gender=STRING)
_PAGEVIEWS = _struct("ksql.pageviews", viewtime=INT64, userid=STRING, pageid=STRING)
_ADDRESS = _struct("ksql.address", city=STRING, state=STRING, zipcode=INT64)
_ORDERS = _struct(
    "ksql.orders", ordertime=INT64, orderid=INT32, itemid=STRING, orderunits=FLOAT64, address=_ADDRESS
)
_STOCK_TRADES = _struct(
    "ksql.StockTrade",
    side=STRING,
    quantity=INT32,
    symbol=STRING,
    price=INT32,
    account=STRING,
    userid=STRING,
)
_SYMBOLS = ("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT")
_ACCOUNTS = ("ABC123", "LMN456", "XYZ789")
_FIRST_MS, _LAST_MS = 1_487_715_775_521, 1_519_273_364_600


def _user(random: Random, number: int) -> Struct:
    return Struct(
        _USERS,
        registertime=random.randrange(_FIRST_MS, _LAST_MS),
        userid=f"User_{random.randint(1, 9)}",
        regionid=f"Region_{random.randint(1, 9)}",
        gender=random.choice(("MALE", "FEMALE", "OTHER")),
    )


def _pageview(random: Random, number: int) -> Struct:
    return Struct(
        _PAGEVIEWS,
        viewtime=1 + number * 10,
        userid=f"User_{random.randint(1, 9)}",
        pageid=f"Page_{random.randint(10, 99)}",
    )


def _order(random: Random, number: int) -> Struct:
    address = Struct(
        _ADDRESS,
        city=f"City_{random.randint(1, 99)}",
        state=f"State_{random.randint(1, 99)}",
        zipcode=random.randint(10_000, 99_999),
    )
    return Struct(
        _ORDERS,
        ordertime=random.randrange(_FIRST_MS, _LAST_MS),
        orderid=number,
        itemid=f"Item_{random.randint(0, 999)}",
        orderunits=random.uniform(0.1, 10.0),
        address=address,
    )


def _stock_trade(random: Random, number: int) -> Struct:
    return Struct(
        _STOCK_TRADES,
        side=random.choice(("BUY", "SELL")),
        quantity=random.randint(1, 5000),
        symbol=random.choice(_SYMBOLS),
        price=random.randint(5, 1000),
        account=random.choice(_ACCOUNTS),
        userid=f"User_{random.randint(1, 9)}",
    )


SHAPES: dict[str, Shape] = {
    "users": Shape(_USERS, "userid", _user),
    "pageviews": Shape(_PAGEVIEWS, "viewtime", _pageview),
    "orders": Shape(_ORDERS, "orderid", _order),
    "stock_trades": Shape(_STOCK_TRADES, "symbol", _stock_trade),
}


def key_of(shape: Shape, field: str, value: Struct) -> tuple[Schema | None, Any]:
    """Return schema and value of a record's key; no key for an empty field name."""
    if not field:
        return None, None
    return value.field(field).schema, value.get(field)
