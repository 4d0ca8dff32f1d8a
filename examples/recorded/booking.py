"""The tools of the travel desk: they read and change a real SQLite database."""

from __future__ import annotations

import datetime
from typing import Any

from recorded.booking_data import TODAY, build
from recorded.tools import Refused, Toolbox, calculate

BICYCLE = 2.0
"""Euros for one bicycle on one train."""
CHANGE_FEE = 6.0
"""Euros to change a saver ticket, for each traveller."""
VOUCHER_SHARE = 0.5
"""Share of the price that a late train gives back, as a voucher."""
LATE = 60
"""Minutes from which a train is late enough for that."""
FIRST_NEW = {"train": 48300, "lodge": 9100}
"""Numbers from which new bookings are counted."""


class TravelDesk:
    """One day at the desk; each desk begins with the same database."""

    def __init__(self) -> None:
        self._database = build()
        self._made = 0

    def tools(self) -> Toolbox:
        """The tools by name."""
        names = (
            *("get_guest", "get_booking", "search_trains", "search_lodges", "book_train"),
            *("change_train", "cancel_booking", "book_lodge", "change_lodge", "claim_delay"),
            *("send_confirmation", "hand_over"),
        )
        return Toolbox({name: getattr(self, name) for name in names} | {"calculate": calculate})

    def get_guest(self, guest_id: str) -> dict[str, Any]:
        """Who somebody is, how they can pay, and the ids of their bookings."""
        guest = self._one("SELECT * FROM guests WHERE id = ?", guest_id, f"no guest {guest_id}")
        paying = self._all("SELECT id, kind, balance FROM payments WHERE guest = ?", guest_id)
        booked = self._all("SELECT id FROM bookings WHERE guest = ? ORDER BY begins, id", guest_id)
        return {**guest, "payments": paying, "bookings": [row["id"] for row in booked]}

    def get_booking(self, booking_id: str) -> dict[str, Any]:
        """One booking with its train or lodge."""
        booking = self._booking(booking_id)
        if booking["kind"] == "train":
            ride = self._departure(booking["what"])
            asked = ("id", "origin", "destination", "date", "leaves", "arrives", "delay")
            what = {"departure": {name: ride[name] for name in asked}}
        else:
            what = {"lodge": self._one("SELECT * FROM lodges WHERE id = ?", booking["what"])}
        shown = {k: v for k, v in booking.items() if k != "what" and v is not None}
        return {**shown, **what}

    def search_trains(self, origin: str, destination: str, date: str) -> list[dict[str, Any]]:
        """Direct trains of one day."""
        found = self._all(
            "SELECT id, leaves, arrives, saver, flex, seats, bicycle_places FROM departures "
            "WHERE origin = ? AND destination = ? AND date = ? ORDER BY leaves",
            *(origin, destination, date),
        )
        if not found:
            raise Refused(f"no direct train from {origin} to {destination} on {date}")
        return found

    def search_lodges(
        self, place: str, arrival: str, nights: int, guests: int
    ) -> list[dict[str, Any]]:
        """Rooms of a place that are free for all nights and sleep that many."""
        rooms = self._all(
            "SELECT lodge, room, kind, sleeps, price, cycle_shed, walk FROM rooms "
            "JOIN lodges ON lodges.id = lodge WHERE place = ? AND sleeps >= ? ORDER BY price",
            *(place, guests),
        )
        free = [r for r in rooms if not self._taken(r["lodge"], r["room"], arrival, nights)]
        if not free:
            raise Refused(f"no room in {place} for {guests} from {arrival} for {nights} nights")
        return [{**room, "total": room["price"] * nights} for room in free]

    def book_train(
        self,
        guest_id: str,
        departure_id: str,
        fare: str,
        travellers: int,
        bicycles: int,
        payments: dict[str, float],
    ) -> dict[str, Any]:
        """Book seats and places for bicycles; `payments` says which method pays how much."""
        price = self._ticket(departure_id, fare, travellers, bicycles)
        self._pay(guest_id, payments, price)
        self._move_seats(departure_id, travellers, bicycles)
        what = (departure_id, fare, self._departure(departure_id)["date"], None)
        return self._add(guest_id, "train", what, (travellers, bicycles), (price, payments))

    def change_train(self, booking_id: str, departure_id: str, payment_id: str) -> dict[str, Any]:
        """Move a booking to another departure of its line; the difference is charged or repaid."""
        booking = self._open(booking_id, "train")
        before, after = self._departure(booking["what"]), self._departure(departure_id)
        if before["train"] != after["train"]:
            raise Refused(f"{departure_id} is no departure of line {before['train']}")
        people, bicycles = booking["travellers"], booking["bicycles"]
        price = self._ticket(departure_id, booking["option"], people, bicycles)
        fee = CHANGE_FEE * people if booking["option"] == "saver" else 0.0
        differs = round(price - booking["paid"] + fee, 2)
        self._settle(booking["guest"], payment_id, differs)
        self._move_seats(booking["what"], -people, -bicycles)
        self._move_seats(departure_id, people, bicycles)
        self._database.execute(
            "UPDATE bookings SET what = ?, begins = ?, paid = ? WHERE id = ?",
            (departure_id, after["date"], price, booking_id),
        )
        moved = {"id": booking_id, "departure": departure_id, "date": after["date"]}
        return {**moved, "leaves": after["leaves"], "fee": fee, "charged": differs}

    def cancel_booking(self, booking_id: str) -> dict[str, Any]:
        """Cancel; gives what is repaid and to which method."""
        booking = self._open(booking_id)
        days = (_day(booking["begins"]) - _day(TODAY)).days
        if booking["kind"] == "train":
            share = 1.0 if booking["option"] == "flex" else 0.0
            self._move_seats(booking["what"], -booking["travellers"], -booking["bicycles"])
        else:
            share = 1.0 if days >= 7 else 0.5
            self._move_nights(booking, 1)
        repaid = round(booking["paid"] * share, 2)
        self._settle(booking["guest"], booking["paid_with"].split("+")[0], -repaid)
        self._database.execute(
            "UPDATE bookings SET status = 'cancelled' WHERE id = ?", [booking_id]
        )
        return {
            "id": booking_id,
            "status": "cancelled",
            "days_before": days,
            "repaid": repaid,
            "to": booking["paid_with"],
        }

    def book_lodge(
        self,
        guest_id: str,
        lodge_id: str,
        room: str,
        arrival: str,
        nights: int,
        guests: int,
        payments: dict[str, float],
    ) -> dict[str, Any]:
        """Book a room for some nights."""
        price = self._room(lodge_id, room, guests)["price"] * nights
        if taken := self._taken(lodge_id, room, arrival, nights):
            raise Refused(f"{lodge_id} {room} is full on {', '.join(taken)}")
        self._pay(guest_id, payments, price)
        what = (lodge_id, room, arrival, nights)
        added = self._add(guest_id, "lodge", what, (guests, 0), (price, payments))
        self._move_nights(self._booking(added["id"]), -1)
        return added

    def change_lodge(
        self, booking_id: str, arrival: str, nights: int, payment_id: str
    ) -> dict[str, Any]:
        """Move a stay to other nights in its room; the difference is charged or repaid."""
        booking = self._open(booking_id, "lodge")
        self._move_nights(booking, 1)
        taken = self._taken(booking["what"], booking["option"], arrival, nights)
        if taken:
            self._move_nights(booking, -1)
            where = f"{booking['what']} {booking['option']}"
            raise Refused(f"{where} is full on {', '.join(taken)}; {booking_id} stays as it is")
        price = self._room(booking["what"], booking["option"], 1)["price"] * nights
        differs = round(price - booking["paid"], 2)
        self._settle(booking["guest"], payment_id, differs)
        self._database.execute(
            "UPDATE bookings SET begins = ?, nights = ?, paid = ? WHERE id = ?",
            (arrival, nights, price, booking_id),
        )
        self._move_nights(self._booking(booking_id), -1)
        return {"id": booking_id, "arrival": arrival, "nights": nights, "charged": differs}

    def claim_delay(self, booking_id: str) -> dict[str, Any]:
        """A voucher for a train that came late."""
        booking = self._booking(booking_id)
        delay = self._departure(booking["what"])["delay"]
        if delay < LATE:
            raise Refused(f"{booking_id} was {delay} minutes late; vouchers begin at {LATE}")
        if self._all("SELECT * FROM claims WHERE booking = ?", booking_id):
            raise Refused(f"{booking_id} has been claimed already")
        voucher, amount = f"vou-{402 + self._made}", round(booking["paid"] * VOUCHER_SHARE, 2)
        self._made += 1
        values = (voucher, booking["guest"], amount)
        self._database.execute("INSERT INTO payments VALUES (?, ?, 'voucher', ?)", values)
        self._database.execute("INSERT INTO claims VALUES (?, ?)", (booking_id, voucher))
        return {"booking": booking_id, "delay": delay, "voucher": voucher, "amount": amount}

    def send_confirmation(
        self, guest_id: str, booking_ids: list[str], language: str
    ) -> dict[str, Any]:
        """Send the details of bookings to a guest."""
        for code in booking_ids:
            if self._booking(code)["guest"] != guest_id:
                raise Refused(f"{code} does not belong to {guest_id}")
        return self._message("mail", guest_id, f"{language}: {', '.join(booking_ids)}")

    def hand_over(self, guest_id: str, summary: str) -> dict[str, Any]:
        """Leave a case to a person at the desk."""
        return self._message("case", guest_id, summary)

    # The database.

    def _all(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return [dict(row) for row in self._database.execute(query, values)]

    def _one(self, query: str, value: str, missing: str = "not found") -> dict[str, Any]:
        rows = self._all(query, value)
        if not rows:
            raise Refused(missing)
        return rows[0]

    def _booking(self, code: str) -> dict[str, Any]:
        return self._one("SELECT * FROM bookings WHERE id = ?", code, f"no booking {code}")

    def _departure(self, code: str) -> dict[str, Any]:
        return self._one("SELECT * FROM departures WHERE id = ?", code, f"no departure {code}")

    def _open(self, code: str, kind: str | None = None) -> dict[str, Any]:
        booking = self._booking(code)
        if booking["status"] != "confirmed":
            raise Refused(f"{code} is {booking['status']}")
        if kind not in (None, booking["kind"]):
            raise Refused(f"{code} is no {kind} booking")
        return booking

    def _room(self, lodge: str, room: str, guests: int) -> dict[str, Any]:
        rooms = self._all("SELECT * FROM rooms WHERE lodge = ? AND room = ?", lodge, room)
        if not rooms:
            raise Refused(f"{lodge} has no room {room}")
        if rooms[0]["sleeps"] < guests:
            raise Refused(f"{lodge} {room} sleeps {rooms[0]['sleeps']}, not {guests}")
        return rooms[0]

    def _ticket(self, departure_id: str, fare: str, travellers: int, bicycles: int) -> float:
        ride = self._departure(departure_id)
        if fare not in ("saver", "flex"):
            raise Refused(f"no fare {fare}; there are saver and flex")
        if ride["seats"] < travellers:
            raise Refused(f"{departure_id} has {ride['seats']} seats left, not {travellers}")
        if ride["bicycle_places"] < bicycles:
            left = ride["bicycle_places"]
            raise Refused(f"{departure_id} has {left} places for bicycles left, not {bicycles}")
        return float(ride[fare] * travellers + BICYCLE * bicycles)

    def _pay(self, guest: str, payments: dict[str, float], price: float) -> None:
        if round(sum(payments.values()), 2) != price:
            raise Refused(
                f"the payments make {sum(payments.values()):.2f}, the price is {price:.2f}"
            )
        for code, amount in payments.items():
            self._payment(guest, code, amount)
        for code, amount in payments.items():
            self._settle(guest, code, amount)

    def _payment(self, guest: str, code: str, amount: float) -> dict[str, Any]:
        found = self._one("SELECT * FROM payments WHERE id = ?", code, f"no payment method {code}")
        if found["guest"] != guest:
            raise Refused(f"{code} does not belong to {guest}")
        if found["balance"] is not None and found["balance"] < amount:
            raise Refused(f"{code} has a balance of {found['balance']:.2f}, {amount:.2f} is needed")
        return found

    def _settle(self, guest: str, code: str, amount: float) -> None:
        if self._payment(guest, code, amount)["balance"] is not None:
            update = "UPDATE payments SET balance = round(balance - ?, 2) WHERE id = ?"
            self._database.execute(update, (amount, code))

    def _add(
        self,
        guest: str,
        kind: str,
        what: tuple[object, ...],
        number: tuple[int, int],
        paying: tuple[float, dict[str, float]],
    ) -> dict[str, Any]:
        code = f"{kind[0].upper()}-{FIRST_NEW[kind] + self._made}"
        self._made += 1
        price, payments = paying
        row = (code, guest, kind, "confirmed", *what, *number, price, "+".join(payments), TODAY)
        self._database.execute(f"INSERT INTO bookings VALUES ({', '.join('?' * 13)})", row)
        return {
            "id": code,
            "status": "confirmed",
            kind: what[0],
            "option": what[1],
            "begins": what[2],
            "paid": price,
            "paid_with": payments,
        }

    def _move_seats(self, departure: str, seats: int, bicycles: int) -> None:
        self._database.execute(
            "UPDATE departures SET seats = seats - ?, bicycle_places = bicycle_places - ? "
            "WHERE id = ?",
            (seats, bicycles, departure),
        )

    def _taken(self, lodge: str, room: str, arrival: str, nights: int) -> list[str]:
        wanted = [str(_day(arrival) + datetime.timedelta(n)) for n in range(nights)]
        rows = self._all("SELECT night, free FROM nights WHERE lodge = ? AND room = ?", lodge, room)
        free = {row["night"] for row in rows if row["free"] > 0}
        return [night for night in wanted if night not in free]

    def _move_nights(self, stay: dict[str, Any], number: int) -> None:
        for n in range(stay["nights"]):
            night = str(_day(stay["begins"]) + datetime.timedelta(n))
            self._database.execute(
                "UPDATE nights SET free = free + ? WHERE lodge = ? AND room = ? AND night = ?",
                (number, stay["what"], stay["option"], night),
            )

    def _message(self, kind: str, guest: str, text: str) -> dict[str, Any]:
        self._one("SELECT * FROM guests WHERE id = ?", guest, f"no guest {guest}")
        [row] = self._all("SELECT count(*) AS number FROM messages")
        code = f"{kind}-{row['number'] + 71}"
        self._database.execute("INSERT INTO messages VALUES (?, ?, ?)", (code, guest, text))
        return {"id": code, "status": "sent" if kind == "mail" else "open"}


def _day(date: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(date)
    except ValueError as problem:
        raise Refused(f"{date} is no date of the form 2031-05-14") from problem
