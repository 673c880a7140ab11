"""The README's pictures of the dashboard: `make pictures` draws made-up screenshots, lets the real service
take them in, and photographs its page with the browser of the tests. Nothing in them is anybody's.

The library, the search, an open screenshot and the phone show what the embedded analyser reads, offline. The
note and the chat show what a language model adds; theirs is scripted.
"""

import io
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import readme_screencast  # noqa: E402
from tests.support import browser  # noqa: E402
from tests.support.fake_llm import FakeLLM  # noqa: E402
from web import installable  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
PHONE = (540, 1170)
HOURS = 5  # between two screenshots
OFTEN = 19  # hours between two of those that only fill the library
COLOURS = 160  # a palette is enough for flat colours, and makes a quarter of the bytes

# App, colour, category, intent, summary, lines. A line that begins with a dash is the other side of a
# conversation or an amount.
SCENES: tuple[tuple[str, str, str, str, str, list[str]], ...] = (
    ("Messages", "#0b6b5d", "chat", "reminder", "Mara moves dinner to Friday, 19:30, at Osteria Lupo.",
     ["Are we still on for tomorrow?", "-Could we make it Friday?", "Sure! 19:30, Osteria Lupo?",
      "-Perfect, I will book it",
      "Great, see you there"]),
    ("Nordbank", "#23395b", "finance", "note",
     "Statement of November: 1,284.50 EUR left, the rent was paid on the 3rd.",
     ["Balance|1,284.50 EUR", "Rent|-890.00", "Salary|+2,410.00",
      "Groceries|-63.20", "Electricity|-58.00", "Bookshop|-24.90"]),
    ("Browser", "#7a4b12", "webpage", "research",
     "How to store sourdough starter over a holiday: dry it, or keep it cold at 4 degrees.",
     ["Keeping sourdough alive", "A starter survives two weeks in the", "fridge when it is fed right before.",
      "For longer trips, dry a thin layer", "on baking paper and crumble it.",
      "Wake it up with warm water."]),
    ("Rail", "#8c2f39", "notification", "reminder",
     "Train ICE 708 to Hamburg leaves on Friday at 09:41 from platform 7, seat 54.",
     ["ICE 708 to Hamburg|09:41", "Friday|27 Nov", "Platform|7", "Coach|12", "Seat|54", "Order|XK7 4QD"]),
    ("Parcel", "#b0771c", "notification", "reminder",
     "A parcel waits at the locker in Main Street until Friday, code 4471.",
     ["Your parcel is here", "Locker Main Street 12", "Open with the code 4471",
      "It waits until Friday, 18:00"]),
    ("Pictures", "#5b3a8c", "social_media", "reference",
     "A shelf built from old crates, with the list of what is needed.",
     ["Crate shelf in an afternoon", "6 crates, 24 screws, wood oil", "Sand, oil twice, let it dry",
      "Screw from the inside",
      "1,204 people like this"]),
    ("Clinic", "#1d6f8c", "webpage", "reminder",
     "Dentist appointment on Tuesday at 08:15, bring the insurance card.",
     ["Your appointment", "Tuesday|08:15", "Dr. Lindqvist|Room 3",
      "Bring your insurance card.", "Phone +49 40 1234567"]),
    ("Notes", "#8a6d00", "other", "note",
     "Gift ideas for Jonas: the fountain pen, a map of Norway, the second volume.",
     ["Gifts for Jonas", "Fountain pen, fine nib", "Map of Norway",
      "Second volume of the trilogy", "Tickets for the quartet?"]),
)  # fmt: skip

# More of the library: app, colour, lines.
MORE: tuple[tuple[str, str, list[str]], ...] = (
    ("Weather", "#2a6fb0", ["Hamburg|12°", "Friday|9°, rain", "Saturday|7°, wind", "Sunday|11°",
     "Monday|13°"]),
    ("Messages", "#0b6b5d", ["Did you water the plants?", "-Yes, yesterday", "You are the best",
                             "-Keys are under the mat"]),
    ("Recipes", "#b5502f", ["Lentil soup", "250 g red lentils, 1 onion,", "2 carrots, 1 tin of tomatoes,",
                            "cumin, lemon, parsley.", "Simmer for 25 minutes."]),
    ("Market", "#6b4c8a", ["Your order has shipped", "Order 7718-204", "Desk lamp|34.90 EUR",
     "Delivery|Tuesday"]),
    ("Nordbank", "#23395b", ["Transfer sent", "To Jonas Weber|-45.00", "Concert tickets|12 Oct",
     "Balance|1,431.20 EUR"]),
    ("Maps", "#3d7a3a", ["Osteria Lupo", "Lindenallee 22, 20259 Hamburg", "Open until 23:00",
     "4.6 stars, 812 reviews"]),
    ("Radio", "#9c2c5b", ["Now playing", "Nocturne in E flat", "Evening concert, 20:15",
     "Saved to favourites"]),
    ("Clinic", "#1d6f8c", ["Vaccination record", "Tetanus|2019", "Influenza|Oct 2025", "Next|2029"]),
    ("Notes", "#8a6d00", ["Shopping", "Oats, yoghurt, coffee,", "washing powder, batteries AA,",
     "light bulb E27, 8 W"]),
    ("Rail", "#8c2f39", ["RE 5 to Cuxhaven|10:21", "Platform|3", "On time", "Bicycle ticket|6.50"]),
    ("Browser", "#7a4b12", ["How to repot a ficus", "Choose a pot two fingers wider.",
     "Loosen the roots with care,",
                            "water it well, and leave it", "out of the sun for a week."]),
    ("Library", "#4a5a1f", ["Your loans", "The Left Hand of Darkness|4 Dec", "Atlas of Islands|4 Dec",
                            "Renewed|2 times"]),
    ("Messages", "#0b6b5d", ["The parcel is at the neighbour", "-Which one?", "Number 14, ring twice",
     "-Thanks!"]),
    ("Tickets", "#5b3a8c", ["Quartet in the old mill", "Saturday|19:00", "Row 6|Seat 11 and 12",
     "Code|QF83K"]),
    ("Fitness", "#b0331c", ["Run|6.2 km", "Time|34:10", "Pace|5:31", "Heart rate|152"]),
    ("Energy", "#0f7a6a", ["Meter reading", "Electricity|18,204 kWh", "Gas|4,511 m3", "Send until|30 Nov"]),
)  # fmt: skip

ARTICLE = """## This week

- **Friday, 09:41** train ICE 708 to Hamburg, platform 7
- **Friday, 19:30** dinner with Mara at Osteria Lupo
- **Until Friday, 18:00** the parcel at the locker in Main Street

> The appointment on Tuesday is before work: the insurance card has to come along.

| What | When |
|---|---|
| Dentist | Tuesday, 08:15 |
| Train | Friday, 09:41 |
"""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser.running() as chromium:
        with browser.Dashboard(chromium, Path(folder, "offline"), None) as dashboard:
            fill(dashboard)
            photograph(dashboard)
            readme_screencast.make(dashboard, FOLDER / "screencast.webp")
        with FakeLLM() as llm, browser.Dashboard(chromium, Path(folder, "model"), llm) as dashboard:
            furnish(dashboard)
            photograph_answers(dashboard)
    for name, (file, size) in zip(("library", "phone"), installable.SCREENSHOTS.items(), strict=True):
        shrunk = Image.open(FOLDER / f"{name}.png").convert("RGB").resize(size, Image.Resampling.LANCZOS)
        shrunk.quantize(COLOURS, dither=Image.Dither.NONE).save(installable.FOLDER / file, optimize=True)


def fill(dashboard: browser.Dashboard) -> None:
    """Screenshots of two weeks, read by the embedded analyser."""
    scenes = [(app, colour, lines) for app, colour, *_, lines in SCENES]
    for number, (app, colour, lines) in enumerate([*MORE, *scenes], 1):
        left = len(MORE) + len(SCENES) - number
        hours = HOURS * (left + 0.4) if left < len(SCENES) else OFTEN * (left - len(SCENES) + 3)
        upload(dashboard, number, screenshot(app, colour, lines), hours)
    dashboard.service.wait_until_analysed()
    dashboard.service.call("PUT", "/api/data/retention", json={"retention_days": 365})


def upload(dashboard: browser.Dashboard, number: int, picture: bytes, hours: float) -> None:
    """Upload a phone's picture that was taken some hours ago."""
    taken = str(round((time.time() - 3600 * hours) * 1000))
    phone = {"device_id": "phone", "device_name": "Phone", "original_timestamp": taken}
    dashboard.service.upload(picture, f"Screenshot_{number}.png", **phone)


def furnish(dashboard: browser.Dashboard) -> None:
    """Screenshots with their findings, a note, and a conversation."""
    for number, (app, colour, category, intent, summary, lines) in enumerate(SCENES, 1):
        words = [line.lstrip("-").replace("|", " ") for line in lines]
        entities = (
            [{"type": "date", "value": "Friday, 09:41"}, {"type": "code", "value": "XK7 4QD"}]
            if app == "Rail"
            else []
        )
        dashboard.findings.append(findings(app, category, intent, summary, entities, "\n".join(words)))
        upload(dashboard, number, screenshot(app, colour, lines), HOURS * (len(SCENES) - number + 0.4))
        dashboard.service.wait_until_analysed()
    about = {
        "title": "What is due this week",
        "summary": "A dinner, a train and a parcel.",
        "content": ARTICLE,
        "category": "reminder",
    }
    articles = [{**about, "confidence": 0.9, "photo_ids": [1, 4, 5, 7]}]
    dashboard.llm.default = lambda request: {"articles": articles}
    dashboard.service.call("POST", "/api/dynamics/trigger")
    search = {"name": "search_knowledge_base", "arguments": '{"query": "train Hamburg"}'}
    dashboard.llm.default = lambda request: "Nothing more."
    dashboard.llm.answer(None, tool_calls=[{"id": "call_1", "type": "function", "function": search}])
    dashboard.llm.answer(
        "Your train **ICE 708** to Hamburg leaves on **Friday at 09:41** from platform 7; "
        "you have seat 54 in coach 12 (#4)."
    )
    dashboard.service.call("POST", "/api/chat/send", json={"message": "When does my train leave?"})


def findings(
    app: str, category: str, intent: str, summary: str, entities: list[dict[str, str]], text: str
) -> dict[str, Any]:
    found = {
        "app_name": app,
        "content_category": category,
        "intent": intent,
        "summary": summary,
        "visible_text": text,
    }
    return {**found, "entities": entities, "confidence": 0.94, "memories": []}


def photograph(dashboard: browser.Dashboard) -> None:
    page = _open(dashboard, "#/library")
    shoot(page, "library", ".timeline img")
    page = _open(dashboard, "#/library?q=friday", theme="dark")
    shoot(page, "search", ".results img")
    [train] = [hit["id"] for hit in dashboard.service.get("/api/search", q="XK7 4QD")["items"][:1]]
    page = _open(dashboard, f"#/photo/{train}")
    page.locator(".viewer-details .record-facts").wait_for()
    shoot(page, "viewer", ".viewer-slide:not([inert]) img")
    page = _open(
        dashboard,
        "#/library",
        theme="dark",
        language="zh",
        size=browser.PHONE,
        is_mobile=True,
        has_touch=True,
    )
    shoot(page, "phone", ".timeline img")


def photograph_answers(dashboard: browser.Dashboard) -> None:
    page = _open(dashboard, "#/notes/1")
    shoot(page, "note", "main img")
    [conversation] = dashboard.service.get("/api/chat/conversations")["conversations"]
    page = _open(dashboard, f"#/chat/{conversation['id']}")
    shoot(page, "chat", "main img")


def _open(dashboard: browser.Dashboard, address: str, **options: Any) -> Page:
    return dashboard.open(address, device_scale_factor=2, **options)


def shoot(page: Page, name: str, pictures: str) -> None:
    """Save what the page shows, once the pictures that this selector finds are there."""
    page.locator(pictures).first.wait_for()
    page.wait_for_load_state("networkidle")
    visible = "(image) => image.getBoundingClientRect().top < innerHeight"
    near = f"[...document.querySelectorAll(found)].filter({visible})"
    browser.settled(page, f"(found) => {near}.every((image) => image.naturalWidth > 0)", pictures)
    image = (
        Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    )
    image.save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name}.png: {(FOLDER / f'{name}.png').stat().st_size // 1024} KB")


def screenshot(app: str, colour: str, lines: list[str]) -> bytes:
    """A phone's screen: a bar with the app's name, and the lines as bubbles, as rows with something at the
    right, or as text.
    """
    picture = Image.new("RGB", PHONE, "#f6f6f3")
    draw = ImageDraw.Draw(picture)
    title, text = ImageFont.load_default(size=34), ImageFont.load_default(size=25)
    draw.rectangle((0, 0, PHONE[0], 130), fill=colour)
    draw.text((28, 16), "9:41", fill="white", font=ImageFont.load_default(size=20))
    draw.text((28, 66), app, fill="white", font=title)
    bubbles = any(line.startswith("-") for line in lines)
    for row, line in enumerate(lines):
        top = 165 + row * (92 if bubbles else 78)
        if bubbles:
            said, own = line.lstrip("-"), line.startswith("-")
            wide = round(draw.textlength(said, font=text)) + 40
            left = PHONE[0] - 24 - wide if own else 24
            draw.rounded_rectangle((left, top, left + wide, top + 70), 22, fill=colour if own else "white")
            draw.text((left + 20, top + 20), said, fill="white" if own else "#222", font=text)
        elif "|" in line:
            name, value = line.split("|")
            draw.rounded_rectangle((20, top, 520, top + 66), 14, fill="white")
            draw.text((38, top + 19), name, fill="#222", font=text)
            draw.text((502, top + 19), value, fill=colour, font=text, anchor="ra")
        else:
            draw.text((28, top + 12), line, fill="#222" if row else colour, font=text if row else title)
    draw.rounded_rectangle((190, 1145, 350, 1151), 3, fill="#999")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


if __name__ == "__main__":
    main()
