"""Which records a screen holds: the makers of all types, in the order in which they are asked.

A type that is sure by its form (a flight number between two places, a code with its label) is asked before
one that any list of lines may look like. A screen is about one payment, and about one thing to go to.
"""

from collections.abc import Mapping

from engines.records import MAX_RECORDS, TYPES, Record
from rules import balances, bookings, cards, lists, money, parcels, travel, writings
from rules.view import Maker, View

MAKERS: tuple[Maker, ...] = (
    writings.error,
    cards.one_time_code,
    cards.wifi,
    cards.contact,
    cards.contacts,
    writings.conversation,
    lists.messages,
    lists.mails,
    writings.post,
    writings.video,
    writings.recipe,
    writings.weather,
    lists.settings,
    lists.notices,
    lists.month,
    travel.place_map,
    travel.journey,
    bookings.lodging,
    parcels.parcel,
    bookings.food,
    bookings.event,
    bookings.appointment,
    money.subscription,
    money.invoice,
    money.transfer,
    money.receipt,
    balances.balance,
    money.product,
    lists.tasks,
    lists.calendar,
    writings.article,
)

# The types of whole screens, of which the vote (`rules/vote.py`) chooses one, and as which kinds of screen
# their makers look at one: the first, where it is of none of them.
SCREENS: dict[str, tuple[str, ...]] = {
    "Conversation": ("conversation",),
    "MessageList": ("conversations", "notices", "lock_screen"),
    "MailList": ("mail",),
    "Contact": ("contacts",),
    "SocialMediaPosting": ("post",),
    "SettingsPage": ("settings",),
    "Balance": ("accounts",),
    "Article": ("article",),
    "TaskList": ("tasks",),
    "CalendarView": ("calendar",),
}
_OF_SCREENS: dict[Maker, str] = {
    writings.conversation: "Conversation",
    cards.contacts: "Contact",
    lists.messages: "MessageList",
    lists.mails: "MailList",
    lists.notices: "MessageList",
    writings.post: "SocialMediaPosting",
    lists.settings: "SettingsPage",
    balances.balance: "Balance",
    writings.article: "Article",
    lists.tasks: "TaskList",
    lists.calendar: "CalendarView",
}
# How much of the chance of no such record that of a type must exceed, so that its maker is asked
# (`docs/measured.md` has what other parts would do).
BESIDE_NONE = 0.4
LEAST_LINES = 3  # of a screen of which the vote tells what it is as a whole

# A list of so few may be the paragraphs of one mail or message: what it says is first then.
_LISTS = ("MailList", "MessageList")
LEAST_ENTRIES = 4
LEAST_FIELDS = 3  # with which something that is paid or booked goes before how it was written
_THINGS = frozenset(list(TYPES)[: list(TYPES).index("OneTimeCode")])
# Of these, a screen has one record at most: the first.
_ONE_OF = (
    {"Receipt", "Invoice", "MoneyTransfer", "Subscription", "Balance", "Product"},
    {
        "LodgingReservation",
        "EventReservation",
        "FoodEstablishmentReservation",
        "Appointment",
        "ParcelDelivery",
    },
    {"FlightReservation", "TrainReservation", "BusReservation", "EventReservation", "Appointment"},
    {"CalendarView"},
)


def records(view: View) -> list[Record]:
    """The records of a screen, at most `MAX_RECORDS`, the one that it is about first."""
    found: list[Record] = []
    chosen = _chosen(view.types) if len(view.layout.all_lines) >= LEAST_LINES else ""
    for maker in MAKERS:
        kind = _OF_SCREENS.get(maker, "")
        if view.types and kind not in ("", chosen):
            continue
        record = maker(_seen_as(view, chosen) if kind and chosen else view)
        if record is not None and not any(
            record.type in group and other.type in group for group in _ONE_OF for other in found
        ):
            found.append(record)
    if len(found) > 1 and _is_setting(found[0], found[1]):
        found = [*found[1:], found[0]]
    return found[:MAX_RECORDS]


def _chosen(types: Mapping[str, float]) -> str:
    """The type of a whole screen that is likely enough beside none; "" where there is none, or no vote."""
    best = max(SCREENS, key=lambda name: types.get(name, 0.0))
    none = sum(chance for name, chance in types.items() if name not in SCREENS)
    return best if types.get(best, 0.0) > BESIDE_NONE * none else ""


def _seen_as(view: View, chosen: str) -> View:
    """The screen as one of a type, with what is cached by now."""
    kinds = SCREENS[chosen]
    return view.chosen(view.kind if view.kind in kinds else kinds[0], chosen)


def _is_setting(first: Record, second: Record) -> bool:
    """Whether the first record is only how the second one is written: a mail or a message with labelled
    values, whose paragraphs look like a list or a conversation.
    """
    if first.type in _LISTS and len(first.entries("entries")) < LEAST_ENTRIES:
        return True
    return (
        first.type in (*_LISTS, "Conversation")
        and second.type in _THINGS
        and len(second.fields) >= LEAST_FIELDS
    )
