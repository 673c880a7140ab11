"""Drawn screens with one record each, made from a seed: what is paid, sent, booked and received, in five
languages and a dozen layouts, receipts and bills in 31 (`sheet_layouts.py`). `sheets.toml` has the words.

Nearly all of a sheet is lines with their places, so the rules get them without a reader; `picture` draws one
for the real reader. `sheet_counts.py` counts what is right.
"""

import io
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from PIL import Image, ImageDraw

from benchmarks.sheet_layouts import HEIGHT, LAYOUTS, RUNNING, WIDTH, Canvas, Item, Layout, words
from engines.lines import Page
from engines.records import TYPES
from tests.support import fonts

TAKEN = datetime(2026, 11, 22, 12, 0)  # a Sunday
LANGUAGES = ("en", "zh", "de", "fr", "ja")
OFTEN = {"en": 2, "zh": 2}  # sheets of a type and layout
PAPERS = ("Receipt", "Invoice")  # what is drawn in all layouts
OPTIONAL = 0.65  # how often a field that may be missing is there


class Fact(NamedTuple):
    """A field as it is written, and its normal form as `benchmarks/recorded.py` compares it."""

    written: str
    normal: str


class Sheet(NamedTuple):
    """A drawn screen. `sizes` are those of its texts, in the order of the lines of `page`; `cells` is its
    table, by the keys of the record's list.
    """

    name: str
    type: str
    language: str
    page: Page
    sizes: list[int]
    fields: dict[str, str]
    events: list[tuple[str, str]]
    cells: list[dict[str, str]]


def sheets(layouts: tuple[str, ...], seed: int = 1, types: tuple[str, ...] = ()) -> Iterator[Sheet]:
    """The sheets in these layouts, of these types or of all."""
    for kind, languages in words().items():
        if kind in ("names", "noise", "months", "layouts", "columns") or (types and kind not in types):
            continue
        for language in languages:
            for layout in layouts:
                if layout in LAYOUTS and LAYOUTS[layout].paper and kind not in PAPERS:
                    continue
                for number in range(OFTEN.get(language, 1)):
                    name = f"{kind}-{language}-{layout}-{number}"
                    made = _Maker(random.Random(f"{seed} {name}"), kind, language).sheet(layout, name)
                    if made is not None:
                        yield made


def sheet(
    name: str, kind: str, language: str, layout: str, given: Mapping[str, Fact], shown: Collection[str] = ()
) -> Sheet | None:
    """One sheet with these facts instead of drawn ones, where the type has them; those in `shown` are not
    left out. None where the layout has no words for the type.
    """
    return _Maker(random.Random(name), kind, language, given, shown).sheet(layout, name)


def facts(name: str, kind: str, language: str) -> dict[str, Fact]:
    """All facts that a sheet of this type may have."""
    maker = _Maker(random.Random(name), kind, language)
    return maker.facts(sure=True)


def picture(sheet: Sheet) -> bytes:
    """The sheet as a PNG file."""
    image = Image.new("RGB", (sheet.page.width, sheet.page.height), "white")
    canvas = ImageDraw.Draw(image)
    for line, size in zip(sheet.page.lines, sheet.sizes, strict=True):
        canvas.text(
            (line.left, line.top - 0.1 * size), line.text, font=fonts.font(fonts.CHINESE, size), fill="black"
        )
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


# --------------------------------------------------------------------------------------------- values


# Dates in the usual writings of a language.
_DAYS: dict[str, tuple[Callable[[date], str], ...]] = {
    "en": (
        lambda day: f"{day.day} {day:%B %Y}",
        lambda day: f"{day:%b} {day.day}, {day.year}",
        lambda day: f"{day:%A}, {day.day} {day:%b} {day.year}",
        lambda day: f"{day:%Y-%m-%d}",
        lambda day: f"{day:%d} {day:%b}".upper() + f" {day.year}",
        lambda day: f"{day:%a}, {day:%b} {day.day}, {day.year}",
    ),
    "zh": (
        lambda day: f"{day.year}年{day.month}月{day.day}日",
        lambda day: f"{day:%Y-%m-%d}",
        lambda day: f"{day.month}月{day.day}日 周{'一二三四五六日'[day.weekday()]}",
        lambda day: f"{day:%Y/%m/%d}",
    ),
    "de": (
        lambda day: f"{day:%d.%m.%Y}",
        lambda day: f"{day.day}. {_month('de', day)} {day.year}",
        lambda day: f"{('Mo', 'Di', 'Mi', 'Do', 'Fr', 'Sa', 'So')[day.weekday()]}, {day:%d.%m.%Y}",
    ),
    "fr": (
        lambda day: f"{day.day} {_month('fr', day)} {day.year}",
        lambda day: f"{day:%d/%m/%Y}",
        lambda day: f"{_french_weekday(day)} {day.day} {_month('fr', day)} {day.year}",
    ),
    "ja": (
        lambda day: f"{day.year}年{day.month}月{day.day}日",
        lambda day: f"{day:%Y/%m/%d}",
        lambda day: f"{day.year}年{day.month}月{day.day}日({'月火水木金土日'[day.weekday()]})",
    ),
}
_AT = {"en": (", ", " at ", " · ", " "), "zh": (" ",), "de": (", ", " "), "fr": (" à ", ", "), "ja": (" ",)}


def _french_weekday(day: date) -> str:
    return ("lun.", "mar.", "mer.", "jeu.", "ven.", "sam.", "dim.")[day.weekday()]


def _month(language: str, day: date) -> str:
    return str(words()["months"][language].split("|")[day.month - 1])


class _Maker:
    """Makes one sheet."""

    def __init__(
        self,
        chance: random.Random,
        kind: str,
        language: str,
        given: Mapping[str, Fact] | None = None,
        shown: Collection[str] = (),
    ):
        self._given, self._shown = given or {}, shown
        self._chance, self._kind, self._language = chance, kind, language
        self._words = words()[kind][language]
        self._currency = chance.choice(
            {"en": ("USD", "GBP", "EUR"), "zh": ("CNY",), "ja": ("JPY",)}.get(language, ("EUR",))
        )
        self._style = chance.randrange(3)
        self._day_style = chance.choice(_DAYS[language])
        self._twelve = language == "en" and chance.random() < 0.4
        self._at = chance.choice(_AT[language])
        self._items: list[Item] = []
        self._sums: list[tuple[str, str]] = []
        self._listed: list[tuple[str, str]] = []
        self._stuff: list[str] = []

    def sheet(self, layout: str, name: str) -> Sheet | None:
        """The sheet in a layout; None where the type has no sentences for it, or they make no record."""
        facts = self.facts()
        canvas = Canvas(self._chance)
        if layout in RUNNING:
            if "mail" not in self._words:
                return None
            said = [
                sentence
                for sentence in self._words["mail"]
                if all(field in facts for field in re.findall(r"\{(\w+)\}", sentence))
            ]
            named = {field for sentence in said for field in re.findall(r"\{(\w+)\}", sentence)}
            facts = {field: fact for field, fact in facts.items() if field in named}
            if not any(facts.keys() >= set(needed) for needed in TYPES[self._kind].needs):
                return None
            texts = [
                sentence.format(**{field: fact.written for field, fact in facts.items()}) for sentence in said
            ]
            canvas.running(layout, texts)
        else:
            drawn = {*self._words["labels"], self._words["subject"].partition("=")[0]}
            facts = {field: fact for field, fact in facts.items() if field in drawn}
            self._fill(canvas, LAYOUTS[layout], facts)
        fields = {field: fact.normal for field, fact in facts.items()}
        cells = [] if layout in RUNNING else self._cells(is_table=LAYOUTS[layout].columns)
        if cells:
            listed = {"Receipt": "items", "Recipe": "recipeIngredient"}.get(self._kind, "entries")
            fields[listed] = " | ".join(cell["name"] for cell in cells)
        page = Page(WIDTH, HEIGHT, canvas.lines)
        return Sheet(name, self._kind, self._language, page, canvas.sizes, fields, self._events(facts), cells)

    def _fill(self, canvas: Canvas, layout: Layout, facts: dict[str, Fact]) -> None:
        subject = self._words["subject"].partition("=")[0]
        canvas.head(self._pick(self._words["heads"]), facts[subject].written if subject else "")
        pairs = [
            (self._pick(self._words["labels"][field]), facts[field].written)
            for field in self._words["labels"]
            if field in facts
        ]
        if layout.hero:
            canvas.hero(pairs.pop(0)[1])
        if layout.later:
            canvas.pairs(layout, pairs)
        canvas.items(self._items, words()["columns"][self._language].split("|"), layout)
        for label, price in self._sums:
            canvas.row(label, price, layout)
        if not layout.later:
            canvas.pairs(layout, pairs)
        rows = Layout()
        for item, price in self._listed:
            canvas.row(item, price, rows)
        if self._stuff:
            canvas.row({"en": "Ingredients", "zh": "食材", "de": "Zutaten"}[self._language], "", rows)
        for item in self._stuff:
            canvas.row(item, "", rows)
        noise = words()["noise"][self._language]
        extra: list[str] = self._words["extra"]
        for text in (*self._chance.sample(extra, min(1, len(extra))), *self._chance.sample(noise, 2)):
            canvas.foot(text)

    def _cells(self, *, is_table: bool) -> list[dict[str, str]]:
        """The table that is drawn, row by row."""
        found = [
            {"name": item.name, "quantity": item.quantity or "1" * is_table, "price": item.price}
            for item in self._items
        ]
        found += [{"name": name, "amount": amount} for name, amount in self._listed]
        found += [{"name": name} for name in self._stuff]
        return [{key: text for key, text in row.items() if text} for row in found]

    def _pick(self, text: str) -> str:
        return self._chance.choice(text.split("|"))

    def _name(self, of: str) -> str:
        if of.startswith("%"):
            return self._pick(of[1:])
        names = words()["names"]
        return self._pick(names.get(f"{of}_{self._language}", names[f"{of}_en"]))

    def facts(self, *, sure: bool = False) -> dict[str, Fact]:
        """The facts of the sheet; with `sure`, all that it may have."""
        given, _, of = self._words["subject"].partition("=")
        found: dict[str, Fact] = {}
        if given:
            name = self._name(of)
            found[given] = self._given.get(given, Fact(name, name))
        makers = getattr(self, f"_of_{self._kind}")()
        for field, (needed, fact) in makers.items():
            labels, mail = self._words["labels"], " ".join(self._words.get("mail", ()))
            if field in found or (field not in labels and f"{{{field}}}" not in mail):
                continue
            if needed or self._chance.random() < OPTIONAL or sure or field in self._shown:
                found[field] = self._given.get(field, fact)
        return found

    def amount(self, low: int = 3, high: int = 400) -> Fact:
        """An amount of money."""
        return self._money(Decimal(self._chance.randrange(low * 100, high * 100)) / 100)

    def _money(self, value: Decimal) -> Fact:
        if self._currency == "JPY":
            value = (value * 100).quantize(Decimal(1))
            written = (f"¥{value:,}", f"{value:,}円", f"￥{value:,}")[self._style]
            return Fact(written, f"{value} JPY")
        plain = f"{value:,.2f}"
        continental = (
            plain.replace(",", "\0").replace(".", ",").replace("\0", "." if self._language == "de" else " ")
        )
        written = {
            "USD": (f"${plain}", f"${plain}", f"USD {plain}"),
            "GBP": (f"£{plain}", f"£{plain}", f"{plain} GBP"),
            "CNY": (f"¥{plain}", f"{plain}元", f"￥{plain}"),
            "EUR": (f"€{plain}",) * 3
            if self._language == "en"
            else (f"{continental} €", f"{continental} EUR", f"{continental} €"),
        }[self._currency][self._style]
        return Fact(written, f"{value} {self._currency}")

    def day(self, first: int = 3, last: int = 70) -> Fact:
        """A day so far from when the picture was taken."""
        there = TAKEN.date() + timedelta(days=self._chance.randrange(first, last))
        return Fact(self._day_style(there), f"{there}")

    def clock(self, first: int = 7, last: int = 21) -> tuple[str, str]:
        """A time of day as it is written, and in normal form."""
        hour, minute = self._chance.randrange(first, last), self._chance.randrange(0, 60, 5)
        normal = f"{hour:02}:{minute:02}"
        if self._twelve:
            half = "AM" if hour < 12 else "PM"
            return f"{(hour - 1) % 12 + 1}:{minute:02} {half}", normal
        return normal + (" Uhr" if self._language == "de" and self._style == 1 else ""), normal

    def time(self, first: int = 3, last: int = 70) -> Fact:
        """A day with a time of day."""
        day, clock = self.day(first, last), self.clock()
        return Fact(f"{day.written}{self._at}{clock[0]}", f"{day.normal}T{clock[1]}")

    def code(self, letters: int, digits: int, sign: str = "") -> Fact:
        """A code of capital letters and digits."""
        first = "".join(self._chance.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(letters))
        written = first + sign + "".join(self._chance.choice("0123456789") for _ in range(digits))
        return Fact(written, written)

    def named(self, of: str) -> Fact:
        """A name."""
        name = self._name(of)
        return Fact(name, name)

    # ------------------------------------------------------------------------------------------- by type

    def _of_Receipt(self) -> dict[str, tuple[bool, Fact]]:
        total = Decimal(0)
        for name in self._chance.sample(
            words()["names"][f"item_{self._language}"].split("|"), self._chance.randrange(2, 5)
        ):
            price = Decimal(self._chance.randrange(120, 3000)) / 100
            count = self._chance.choice(("", "", "2", "3"))
            if self._currency == "JPY":
                price = price.quantize(Decimal(1))
            total += price
            written = f"{count} x {name}" if count and self._style else f"{name} x{count}" if count else name
            self._items.append(
                Item(name, count, self._money(price).written, self._each(price, count), written)
            )
        sums = {
            "en": ("Subtotal", "Tax"),
            "zh": ("小计", "优惠"),
            "de": ("Zwischensumme", "Versand"),
            "fr": ("Sous-total", "Livraison"),
            "ja": ("小計", "送料"),
        }
        subtotal, more = sums[self._language]
        if self._chance.random() < 0.6:
            added = Decimal(self._chance.randrange(100, 500)) / 100
            if self._currency == "JPY":
                added = added.quantize(Decimal(1))
            sign = -1 if self._language == "zh" else 1
            self._sums = [
                (subtotal, self._money(total).written),
                (more, ("-" if sign < 0 else "") + self._money(added).written),
            ]
            total += sign * added
        if total <= 0:
            total, self._sums = total + added, []
        method = self.named("method")
        order = self._chance.choice((self.code(0, 12), self.code(2, 6, "-"), self.code(3, 7)))
        return {
            "total": (True, self._money(total)),
            "date": (False, self._chance.choice((self.day, self.time))(-20, 0)),
            "paymentMethod": (False, method),
            "orderNumber": (False, order),
        }

    def _each(self, price: Decimal, count: str) -> str:
        """What one of some pieces costs, "" where that is no amount."""
        each = (price / int(count or 1)).quantize(price)
        return self._money(each).written if count and each * int(count) == price else ""

    def _of_Invoice(self) -> dict[str, tuple[bool, Fact]]:
        account = self._chance.choice((self.code(0, 9), self.code(2, 8), self._spaced(3, 3, 4)))
        return {
            "totalPaymentDue": (True, self.amount(10, 2400)),
            "paymentDueDate": (True, self.day(2, 40)),
            "accountId": (False, account),
            "confirmationNumber": (False, self._chance.choice((self.code(2, 7, "-"), self.code(0, 8)))),
        }

    def _spaced(self, *lengths: int) -> Fact:
        groups = ["".join(self._chance.choice("0123456789") for _ in range(length)) for length in lengths]
        return Fact(" ".join(groups), "".join(groups))

    def _of_MoneyTransfer(self) -> dict[str, tuple[bool, Fact]]:
        iban = self._chance.choice(
            ("DE89370400440532013000", "FR1420041010050500013M02606", "GB29NWBK60161331926819")
        )
        grouped = " ".join(iban[at : at + 4] for at in range(0, len(iban), 4))
        reference = self.named("reference")
        return {
            "amount": (True, self.amount(5, 1500)),
            "beneficiary": (True, self.named("person")),
            "iban": (False, Fact(grouped, iban)),
            "reference": (False, reference),
            "date": (False, self._chance.choice((self.day, self.time))(-20, 0)),
        }

    def _of_Subscription(self) -> dict[str, tuple[bool, Fact]]:
        period = self.named("period")
        return {
            "price": (True, self.amount(3, 90)),
            "billingPeriod": (False, period),
            "renewalDate": (True, self.day(3, 40)),
        }

    def _of_ParcelDelivery(self) -> dict[str, tuple[bool, Fact]]:
        tracking = self._chance.choice(
            (self.code(2, 13), self.code(0, 14), self._spaced(4, 4, 4), self.code(4, 9))
        )
        status = self.named("status")
        return {
            "carrier": (True, self.named("carrier")),
            "trackingNumber": (True, tracking),
            "expectedArrival": (False, self.day(1, 8)),
            "orderNumber": (False, self.code(0, 10)),
            "status": (False, status),
        }

    def _journey(self, number: Fact, places: str) -> dict[str, tuple[bool, Fact]]:
        first = self.named(places)
        last = self.named(places)
        while last == first:
            last = self.named(places)
        leaves = self.time(2, 60)
        hour = int(leaves.normal[11:13])
        arrives = f"{min(23, hour + 2):02}:{self._chance.randrange(0, 60, 5):02}"
        shown = (
            datetime.strptime(arrives, "%H:%M").strftime("%I:%M %p").lstrip("0") if self._twelve else arrives
        )
        return {
            "number": (True, number),
            "from": (True, first),
            "to": (True, last),
            "departureTime": (True, leaves),
            "arrivalTime": (False, Fact(shown, f"{leaves.normal[:10]}T{arrives}")),
            "reservationId": (
                False,
                self._chance.choice((Fact("K7QPLM", "K7QPLM"), self.code(3, 3), self.code(6, 0))),
            ),
            "underName": (False, self.named("person")),
        }

    def _of_FlightReservation(self) -> dict[str, tuple[bool, Fact]]:
        number = self._chance.choice((self.code(2, 3), self.code(2, 4), self.code(2, 3, " ")))
        return {
            **self._journey(Fact(number.written, number.normal.replace(" ", "")), "airport"),
            "provider": (False, self.named("airline")),
            "gate": (False, self.code(1, 2)),
            "seat": (
                False,
                Fact(seat := f"{self._chance.randrange(2, 38)}{self._chance.choice('ABCDEF')}", seat),
            ),
        }

    def _of_TrainReservation(self) -> dict[str, tuple[bool, Fact]]:
        number = {
            "zh": f"G{self._chance.randrange(100, 3000)}",
            "de": f"ICE {self._chance.randrange(70, 1700)}",
            "fr": f"TGV {self._chance.randrange(5100, 9900)}",
            "ja": f"のぞみ{self._chance.randrange(1, 250)}号",
        }.get(self._language, f"IC {self._chance.randrange(100, 2000)}")
        seat = {
            "zh": f"{self._chance.randrange(1, 16):02}车{self._chance.randrange(1, 17):02}A号",
            "ja": f"{self._chance.randrange(1, 16)}号車 {self._chance.randrange(1, 20)}番E席",
        }.get(self._language, f"{self._chance.randrange(11, 99)}")
        return {
            **self._journey(Fact(number, number.replace(" ", "")), "city"),
            "platform": (False, Fact(platform := str(self._chance.randrange(1, 19)), platform)),
            "seat": (False, Fact(seat, seat)),
        }

    def _of_BusReservation(self) -> dict[str, tuple[bool, Fact]]:
        number = self._chance.choice((self.code(1, 3), self.code(0, 3)))
        places = "airport" if self._language == "zh" else "city"
        return {
            **self._journey(number, places),
            "platform": (False, Fact(platform := str(self._chance.randrange(1, 30)), platform)),
            "seat": (
                False,
                Fact(seat := f"{self._chance.randrange(1, 14)}{self._chance.choice('ABCD')}", seat),
            ),
        }

    def _of_LodgingReservation(self) -> dict[str, tuple[bool, Fact]]:
        first = TAKEN.date() + timedelta(days=self._chance.randrange(3, 60))
        last = first + timedelta(days=self._chance.randrange(1, 6))
        address = self.named("address")
        return {
            "checkinTime": (True, Fact(self._day_style(first), f"{first}")),
            "checkoutTime": (True, Fact(self._day_style(last), f"{last}")),
            "address": (False, address),
            "reservationId": (False, self._chance.choice((self.code(0, 9), self.code(3, 5)))),
        }

    def _of_EventReservation(self) -> dict[str, tuple[bool, Fact]]:
        place = self.named("place")
        seat = self.named("seat")
        return {
            "startDate": (True, self.time()),
            "location": (False, place),
            "seat": (False, seat),
            "ticketNumber": (False, self.code(2, 8)),
        }

    def _of_FoodEstablishmentReservation(self) -> dict[str, tuple[bool, Fact]]:
        size = f"{self._chance.randrange(2, 9)}"
        unit = {"zh": "人", "ja": "名様"}.get(self._language, "")
        return {"startTime": (True, self.time()), "partySize": (True, Fact(size + unit, size))}

    def _of_Appointment(self) -> dict[str, tuple[bool, Fact]]:
        place = self.named("placex")
        return {
            "startTime": (True, self.time()),
            "with": (True, self.named("doctor")),
            "location": (False, place),
        }

    def _of_OneTimeCode(self) -> dict[str, tuple[bool, Fact]]:
        minutes = {"zh": "5分钟", "de": "10 Minuten"}.get(self._language, "10 minutes")
        return {
            "code": (True, self.code(0, 6)),
            "service": (True, self.named("service")),
            "validFor": (False, Fact(minutes, minutes)),
        }

    def _of_WifiNetwork(self) -> dict[str, tuple[bool, Fact]]:
        name = self._pick("Marigold-Guest|CopperPot_5G|SeaviewGuest|HUAWEI-8F2C")
        secret = self._pick("sunny-day-42|Willkommen2026|tea4two88|q7LmX29p")
        return {"ssid": (True, Fact(name, name)), "password": (True, Fact(secret, secret))}

    def _of_Contact(self) -> dict[str, tuple[bool, Fact]]:
        digits = lambda many: "".join(self._chance.choice("0123456789") for _ in range(many))  # noqa: E731
        phone = {
            "zh": f"138 {digits(4)} {digits(4)}",
            "de": f"+49 170 {digits(7)}",
            "fr": f"06 {digits(2)} {digits(2)} {digits(2)} {digits(2)}",
        }.get(self._language, f"+1 (415) 555-{digits(4)}")
        mail = self._pick("m.olsen@fairpost.example|hello@northlane.example|j_perrin@mailbox.example")
        address = self.named("postal")
        return {
            "telephone": (True, Fact(phone, phone.replace(" ", ""))),
            "email": (True, Fact(mail, mail)),
            "address": (False, address),
        }

    def _of_Balance(self) -> dict[str, tuple[bool, Fact]]:
        if self._chance.random() < 0.5:
            names = {
                "en": "Groceries|Salary|Rent|Coffee",
                "zh": "超市购物|工资收入|房租支出|地铁出行",
                "de": "Supermarkt|Gehalt|Miete",
                "fr": "Supermarché|Salaire|Loyer",
                "ja": "スーパー|給与振込|家賃",
            }[self._language]
            self._listed = [
                (name, self.amount().written) for name in self._chance.sample(names.split("|"), 3)
            ]
        return {"amount": (True, self.amount(50, 9000))}

    def _of_Recipe(self) -> dict[str, tuple[bool, Fact]]:
        self._stuff = words()["names"][f"stuff_{self._language}"].split("|")
        minutes = self._chance.choice((20, 35, 45))
        unit = {"en": "min", "zh": "分钟", "de": "Min."}[self._language]
        size = f"{self._chance.randrange(2, 7)}"
        return {
            "totalTime": (True, Fact(f"{minutes} {unit}", f"{minutes} {unit}")),
            "recipeYield": (True, Fact(size, size)),
        }

    def _events(self, facts: dict[str, Fact]) -> list[tuple[str, str]]:
        """What a person would write into a calendar."""
        said = {field: fact.written for field, fact in facts.items()}
        title = {
            "Invoice": ("paymentDueDate", "{provider} {totalPaymentDue}"),
            "Subscription": ("renewalDate", "{provider}"),
            "ParcelDelivery": ("expectedArrival", "{carrier}"),
            "FlightReservation": ("departureTime", "{number} {from} {to}"),
            "TrainReservation": ("departureTime", "{number} {from} {to}"),
            "BusReservation": ("departureTime", "{from} {to}"),
            "LodgingReservation": ("checkinTime", "{name}"),
            "EventReservation": ("startDate", "{name}"),
            "FoodEstablishmentReservation": ("startTime", "{name}"),
            "Appointment": ("startTime", "{with}"),
        }.get(self._kind)
        if title is None or title[0] not in facts:
            return []
        name = title[1].format_map({**dict.fromkeys(re.findall(r"\{(\w+)\}", title[1]), ""), **said})
        found = [(facts[title[0]].normal, name.strip())]
        if "checkoutTime" in facts:
            found.append((facts["checkoutTime"].normal, name.strip()))
        return found
