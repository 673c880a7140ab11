"""New material for the note writer: three screenshots, a conversation, a memory and an earlier note."""

from datetime import date, datetime

from engines.articles import Material, NewConversation, NewPhoto, RecentNote
from engines.findings import Entity

NOW = datetime(2026, 11, 21, 7, 31)
BILL = NewPhoto(
    12,
    datetime(2026, 11, 20, 18, 5),
    device="phone",
    app="Mail",
    category="finance",
    intent="reference",
    summary="The electricity bill is due.",
    text="Amount due",
    entities=[Entity("date", "Dec 1"), Entity("amount", "€ 48.20")],
    event_day=date(2026, 12, 1),
)
DENTIST = NewPhoto(
    13,
    NOW,
    app="Messages",
    category="chat",
    intent="reminder",
    summary="Dentist on Friday at nine.",
    event_day=date(2026, 11, 27),
)
RECIPE = NewPhoto(14, NOW, category="webpage", intent="reference", summary="A recipe for leek soup.")
CHAT = NewConversation(
    "c0ffee", "Soup", said=("user: What goes with leek?", "assistant: Potatoes."), last_message_id=7
)
BEFORE = RecentNote(5, "Bills in December", "Rent is due.", "reminder")
MATERIAL = Material(NOW, [BILL, DENTIST, RECIPE], [CHAT], ["Lives in Bremen."], [BEFORE])
