"""The database of the travel desk: invented places, guests that are numbers, prices in euros."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

TODAY = "2031-05-05"

_TABLES = """
CREATE TABLE guests (id TEXT PRIMARY KEY, postcode TEXT, tier TEXT, language TEXT);
CREATE TABLE payments (id TEXT PRIMARY KEY, guest TEXT, kind TEXT, balance REAL);
CREATE TABLE departures (
  id TEXT PRIMARY KEY, train TEXT, origin TEXT, destination TEXT, date TEXT, leaves TEXT,
  arrives TEXT, saver REAL, flex REAL, seats INTEGER, bicycle_places INTEGER, delay INTEGER);
CREATE TABLE lodges (id TEXT PRIMARY KEY, place TEXT, kind TEXT, cycle_shed INTEGER, walk INTEGER);
CREATE TABLE rooms (lodge TEXT, room TEXT, sleeps INTEGER, price REAL, PRIMARY KEY (lodge, room));
CREATE TABLE nights (lodge TEXT, room TEXT, night TEXT, free INTEGER,
  PRIMARY KEY (lodge, room, night));
CREATE TABLE bookings (
  id TEXT PRIMARY KEY, guest TEXT, kind TEXT, status TEXT, what TEXT, option TEXT, begins TEXT,
  nights INTEGER, travellers INTEGER, bicycles INTEGER, paid REAL, paid_with TEXT, made TEXT);
CREATE TABLE claims (booking TEXT PRIMARY KEY, voucher TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, guest TEXT, text TEXT);
"""

_GUESTS = [
    ("guest-0412", "7731 KD", "silver", "en"),
    ("guest-0413", "7731 KD", "none", "de"),
    ("guest-0560", "1204 AB", "gold", "en"),
]

_PAYMENTS = [
    ("card-8841", "guest-0412", "card", None),
    ("gift-2207", "guest-0412", "gift card", 140.0),
    ("vou-315", "guest-0412", "voucher", 35.0),
    ("card-1190", "guest-0413", "card", None),
    ("card-5002", "guest-0560", "card", None),
]

_LINES = [
    ("R2", "Aldmoor", "Brenntal", (("08:10", "10:02"), ("13:40", "15:32"), ("18:20", "20:12"))),
    ("R5", "Brenntal", "Corvik", (("09:30", "12:05"), ("15:05", "17:40"))),
    ("R7", "Corvik", "Dunhaven", (("07:45", "09:20"), ("11:15", "12:50"), ("16:30", "18:05"))),
    ("R9", "Dunhaven", "Aldmoor", (("10:05", "14:10"), ("15:50", "19:55"))),
]
_FARES = {"R2": (19.0, 29.0), "R5": (24.0, 38.0), "R7": (15.0, 23.0), "R9": (34.0, 52.0)}

_LODGES = [
    ("lodge-11", "Brenntal", "guesthouse", 1, 6),
    ("lodge-12", "Brenntal", "hostel", 0, 3),
    ("lodge-21", "Corvik", "guesthouse", 1, 14),
    ("lodge-22", "Corvik", "hotel", 0, 4),
    ("lodge-23", "Corvik", "farm", 1, 25),
    ("lodge-31", "Dunhaven", "hotel", 1, 8),
]
_ROOMS = [
    ("lodge-11", "triple", 3, 96.0),
    ("lodge-11", "double", 2, 74.0),
    ("lodge-12", "dormitory", 4, 88.0),
    ("lodge-21", "triple", 3, 102.0),
    ("lodge-21", "double", 2, 81.0),
    ("lodge-22", "family", 4, 149.0),
    ("lodge-23", "loft", 3, 90.0),
    ("lodge-31", "double", 2, 99.0),
    ("lodge-31", "family", 4, 138.0),
]

_BOOKINGS = [
    ("T-48210", "train", "R2-0512-2", "saver", "2031-05-12", None, 3, 3, 63.0, "card-8841"),
    ("T-48211", "train", "R5-0514-1", "flex", "2031-05-14", None, 3, 3, 120.0, "card-8841"),
    ("T-48212", "train", "R7-0516-2", "flex", "2031-05-16", None, 3, 3, 75.0, "card-8841"),
    ("T-48213", "train", "R9-0517-1", "saver", "2031-05-17", None, 3, 3, 126.0, "card-8841"),
    ("L-9034", "lodge", "lodge-11", "triple", "2031-05-12", 2, 3, 0, 192.0, "card-8841"),
    ("L-9035", "lodge", "lodge-21", "triple", "2031-05-14", 2, 3, 0, 204.0, "card-8841"),
    ("T-47702", "train", "R2-0419-3", "flex", "2031-04-19", None, 1, 0, 29.0, "card-8841"),
    ("T-47655", "train", "R9-0412-1", "flex", "2031-04-12", None, 1, 0, 52.0, "card-8841"),
]

_FULL_SHEDS = {"R5-0515-1": (5, 0), "R7-0517-2": (9, 2), "R9-0518-1": (11, 2)}
"""Seats and places for bicycles that are left where there are few."""

_DELAYS = {"R2-0419-3": 48, "R9-0412-1": 95}


def build() -> sqlite3.Connection:
    """The database as it is when the desk opens, in memory."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.executescript(_TABLES)
    _fill(database, "guests", _GUESTS)
    _fill(database, "payments", _PAYMENTS)
    _fill(database, "departures", _departures())
    _fill(database, "lodges", _LODGES)
    _fill(database, "rooms", _ROOMS)
    _fill(database, "nights", _nights())
    _fill(
        database,
        "bookings",
        [
            (code, "guest-0412", kind, _status(begins), what, option, begins, *more, "2031-03-30")
            for code, kind, what, option, begins, *more in _BOOKINGS
        ],
    )
    database.commit()
    return database


def _status(begins: str) -> str:
    return "travelled" if begins < TODAY else "confirmed"


def _fill(database: sqlite3.Connection, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    for row in rows:
        database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _departures() -> Iterator[tuple[object, ...]]:
    days = [("04", day) for day in (12, 19)] + [("05", day) for day in range(10, 22)]
    for train, origin, destination, times in _LINES:
        saver, flex = _FARES[train]
        for month, day in days:
            for place, (leaves, arrives) in enumerate(times, 1):
                code = f"{train}-{month}{day}-{place}"
                dearer = 6.0 if place == 1 and day % 7 in (2, 3) else 0.0
                usual = (12 + 7 * day % 23, 3 + 5 * (day + place) % 4)
                seats, bicycle_places = _FULL_SHEDS.get(code, usual)
                yield (
                    *(code, train, origin, destination, f"2031-{month}-{day}", leaves, arrives),
                    *(saver + dearer, flex + dearer, seats, bicycle_places, _DELAYS.get(code, 0)),
                )


def _nights() -> Iterator[tuple[object, ...]]:
    full = {("lodge-21", "triple", 15), ("lodge-11", "triple", 15), ("lodge-22", "family", 16)}
    for lodge, room, _, _ in _ROOMS:
        for day in range(10, 22):
            free = 0 if (lodge, room, day) in full else 1 + (day + len(room)) % 2
            yield lodge, room, f"2031-05-{day}", free
