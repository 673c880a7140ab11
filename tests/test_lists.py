"""Chats, posts, articles and accounts become records by where their lines are."""

from engines.lines import Line, Page
from engines.records import Record
from rules import cards, lists, templates
from rules import judge as rules
from rules.layout import Layout
from rules.view import Maker, View

BAR = ((40, 20, "9:41", 40), (940, 20, "82%", 40))


def page(*rows, size=(1080, 2340)):
    """A page of rows `(left, top, text)`, or with a height behind them, else 40 pixels."""
    lines = []
    for left, top, text, *height in rows:
        tall = height[0] if height else 40
        lines.append(Line(text, 0.98, left, top, left + len(text) * tall // 2, top + tall))
    return Page(*size, lines)


def records(*rows, size=(1080, 2340)):
    """The records of such a page."""
    return rules.judge(page(*rows, size=size), analyser="local/small", language="en").records


def made(maker: Maker, kind: str, *rows) -> Record:
    """What a maker finds on such a page, as a screen of this kind."""
    shown = page(*BAR, *rows)
    found = maker(View(shown, Layout(shown), kind, "Nimbus", None))
    assert found is not None
    return found


def test_each_entry_of_a_list_of_chats_is_listed_also_a_number_and_one_with_a_draft():
    (found,) = records(
        *BAR,
        (180, 130, "Chats", 56),
        *((180, 320, "Maya Lindqvist"), (960, 322, "09:12"), (180, 380, "See you at the harbour")),
        *((180, 520, "Ida Berg"), (940, 522, "Draft"), (180, 580, "You: I thought about it")),
        *((180, 720, "55 512"), (960, 722, "Mon"), (180, 780, "Your parcel is ready")),
        *((180, 920, "Noor"), (960, 922, "Sun"), (180, 980, "Thanks!")),
    )
    assert (found.type, found.get("name")) == ("MessageList", "Chats")
    assert [entry["who"] for entry in found.entries("entries")] == [
        "Maya Lindqvist", "Ida Berg", "55 512", "Noor",
    ]  # fmt: skip
    assert found.entries("entries")[1]["what"] == "You: I thought about it"


def test_the_name_of_a_chat_is_above_its_message_where_the_time_is_beside_the_message():
    (found,) = records(
        *BAR,
        (180, 130, "Chats", 56),
        *((180, 320, "Maya Lindqvist"), (180, 366, "See you at the harbour"), (960, 368, "09:12")),
        *((180, 520, "Ida Berg"), (180, 566, "I thought about it"), (960, 568, "08:40")),
        *((180, 720, "Noor"), (180, 766, "Thank you so much!"), (960, 768, "08:31")),
    )
    assert found.entries("entries") == [
        {"who": "Maya Lindqvist", "what": "See you at the harbour"},
        {"who": "Ida Berg", "what": "I thought about it"},
        {"who": "Noor", "what": "Thank you so much!"},
    ]


def test_a_list_of_contacts_has_their_names_and_numbers():
    rows = (
        ((150, 300 + 160 * at, name, 46), (150, 360 + 160 * at, f"+49 30 555 01 {at}{at}", 36))
        for at, name in enumerate(["Ada Byron", "Emmy Roth", "Ines Ferrand", "Noor Haddad"], 1)
    )
    found = made(
        cards.contacts, "contacts", (150, 130, "Contacts", 56), *(row for pair in rows for row in pair)
    )
    assert found.type == "Contact"
    assert found.entries("entries")[:2] == [
        {"name": "Ada Byron", "telephone": "+49 30 555 01 11"},
        {"name": "Emmy Roth", "telephone": "+49 30 555 01 22"},
    ]
    assert templates.title(found, "en") == "Contacts: Ada Byron, Emmy Roth, Ines Ferrand and Noor Haddad"


def test_the_page_of_one_contact_needs_no_labels():
    rows = ((400, 300, "Emmy Roth", 70), (150, 600, "+49 30 555 01 22"), (150, 760, "emmy@example.org"))
    found = made(cards.contacts, "contacts", *rows, (150, 920, "Mute"), (150, 1080, "Block"))
    assert {field.name: field.value for field in found.fields} == {
        "name": "Emmy Roth",
        "telephone": "+49305550122",
        "email": "emmy@example.org",
    }


def test_messages_with_times_in_the_middle_are_a_conversation_with_a_number():
    (found,) = records(
        *BAR,
        (460, 130, "4055 123", 48),
        *((440, 420, "11-20 18:05", 36), (660, 500, "Have you left already?")),
        *((440, 660, "11-20 18:07", 36), (60, 740, "I am on the train")),
        *((440, 900, "11-20 18:09", 36), (60, 980, "Wait for me there please")),
        (60, 2240, "Type a message"),
    )
    assert found.type == "Conversation"
    assert found.get("participant") == [{"name": "4055 123"}]
    assert found.get("lastMessage") == "Wait for me there please"


def test_in_a_wide_window_what_is_beside_the_list_of_chats_is_the_conversation():
    chats = [
        row
        for at, name in enumerate(["Maya", "Ida Berg", "Noor", "Jonas", "Book club"])
        for row in (
            (40, 100 + 130 * at, name, 20),
            (330, 102 + 130 * at, f"1{at}:05", 16),
            (40, 140 + 130 * at, "See you there", 18),
        )
    ]
    found = records(
        *chats,
        *((500, 30, "Book club", 24), (500, 160, "Who has read the second part?", 20)),
        *((700, 260, "I have, twice", 20), (500, 400, "Then you may choose the next book", 20)),
        *((500, 560, "Let us meet at my place", 20), (500, 740, "Write a message", 20)),
        size=(1200, 800),
    )
    assert found[0].type == "Conversation"
    assert found[0].get("participant") == [{"name": "Book club"}]
    assert found[0].get("lastMessage") == "Let us meet at my place"
    assert found[0].fields[0].lines == [15]  # of the whole picture


def test_a_post_has_who_is_named_above_its_time_and_the_short_text_below():
    (found,) = records(
        *BAR,
        (420, 130, "Home", 48),
        *((160, 300, "Maya Lindqvist"), (160, 350, "@maya@example.org", 36), (60, 430, "Our first harvest!")),
        *((60, 1300, "#garden #autumn", 36), (60, 1380, "12 likes · 3 comments", 36)),
        *((160, 1500, "Noor"), (160, 1550, "2 hours ago", 36), (60, 1630, "Good morning from the harbour")),
    )
    assert found.type == "SocialMediaPosting"
    assert (found.get("author"), found.get("text")) == ("Maya Lindqvist", "Our first harvest!")


def test_an_article_has_the_heading_above_its_text_and_who_is_named_above_its_day():
    text = (
        "The pier was closed for three winters while",
        "divers replaced its oak posts one by one,",
        "and nobody knew whether the ferries would",
        "come back to the town when it was done.",
        "The first of them left for the islands on",
        "Sunday morning with forty people on board",
        "and with the band of the school on its deck.",
    )
    (found,) = records(
        *BAR,
        *((60, 130, "Town news", 40), (60, 240, "The northern pier opens again", 56)),
        *((160, 340, "Ida Berg", 36), (160, 390, "24 Oct 2026", 32), (420, 700, "Harbour", 110)),
        *((60, 1000 + 54 * at, line, 40) for at, line in enumerate(text)),
    )
    assert (found.type, found.get("headline")) == ("Article", "The northern pier opens again")
    assert (found.get("author"), found.get("datePublished")) == ("Ida Berg", "2026-10-24")
    assert str(found.get("text")).startswith("The pier was closed")


def test_accounts_are_listed_with_the_amounts_below_or_above_their_names():
    (below,) = records(
        *BAR,
        (60, 130, "Accounts", 56),
        *((60, 320, "Everyday money"), (60, 380, "€1,204.10")),
        *((60, 560, "Holiday fund"), (60, 620, "€310.00")),
        *((60, 800, "Rainy days"), (60, 860, "€95.50")),
    )
    assert below.type == "Balance"
    assert below.entries("entries")[1] == {"name": "Holiday fund", "amount": "€310.00"}
    (beside,) = records(
        *BAR,
        (60, 130, "Budget", 56),
        *((60, 400, "€2,100.00", 48), (600, 400, "€1,650.20", 48), (60, 470, "Income", 36)),
        *((600, 470, "Expenses", 36), (60, 700, "Your accounts and transactions", 36)),
    )
    assert beside.entries("entries") == [
        {"name": "Income", "amount": "€2,100.00"},
        {"name": "Expenses", "amount": "€1,650.20"},
    ]


def test_a_month_has_what_is_in_its_cells_whatever_the_rest_of_the_screen_is_about():
    cells = [(40 + 150 * (day % 7), 400 + 160 * (day // 7), str(day + 1), 32) for day in range(31)]
    found = records(
        *BAR,
        (60, 180, "July 2026", 48),
        *cells,
        *((190, 450, "Dentist", 28), (640, 610, "Rent", 28), (340, 930, "Concert", 28)),
        *((60, 1500, "€101.96", 60), (60, 1600, "Due this month", 36)),
    )
    assert found[0].type == "CalendarView"
    assert found[0].get("name") == "July 2026"
    assert [entry["name"] for entry in found[0].entries("entries")] == ["Dentist", "Rent", "Concert"]


def test_a_list_of_chats_is_not_named_by_a_value_or_a_day():
    (found,) = records(
        *BAR,
        (60, 130, "Theme: auto", 56),
        *((180, 320, "Maya Lindqvist"), (960, 322, "09:12"), (180, 380, "See you at the harbour")),
        *((180, 520, "Ida Berg"), (960, 522, "08:40"), (180, 580, "I thought about it")),
        *((180, 720, "Noor"), (960, 722, "08:31"), (180, 780, "Thank you so much!")),
    )
    assert (found.type, found.get("name")) == ("MessageList", None)


def test_a_balance_is_named_by_what_is_above_its_large_amount_and_not_by_whose_it_is():
    (found,) = records(
        *BAR,
        *((60, 130, "Maya Lindqvist", 56), (60, 210, "Welcome back", 36)),
        *((60, 460, "Everyday account", 40), (60, 510, "€2,330.10", 84)),
        *((60, 640, "Transactions", 44), (60, 760, "Bakery"), (840, 760, "-€4.20")),
        *((60, 860, "Book shop"), (840, 860, "-€18.00"), (60, 960, "Balance"), (840, 960, "€2,330.10")),
    )
    assert (found.type, found.get("name")) == ("Balance", "Everyday account")


def test_a_list_of_notifications_beside_whose_heading_a_button_is_has_its_entries():
    (found,) = records(
        *BAR,
        *((60, 260, "Notifications", 64), (880, 270, "Clear all")),
        *((220, 440, "New challenge"), (980, 444, "5m"), (220, 500, "This month we build a small boat")),
        *((220, 700, "New event"), (980, 704, "9h"), (220, 760, "Join us this week at the harbour")),
        *((220, 960, "Item shipped"), (980, 964, "2d"), (220, 1020, "Your mug is on its way to you")),
    )
    assert (found.type, found.get("name")) == ("MessageList", "Notifications")
    assert [entry["who"] for entry in found.entries("entries")] == [
        "New challenge",
        "New event",
        "Item shipped",
    ]


def test_who_posted_something_is_the_name_before_a_handle_also_without_a_time():
    (found,) = records(
        *BAR,
        (420, 130, "Home", 48),
        *((160, 300, "Maya Lindqvist @maya@example.org"), (160, 380, "Our first harvest of pears!")),
        *((160, 1300, "#garden #autumn", 36), (160, 1380, "12 likes · 3 comments", 36)),
        *((160, 1500, "Noor @noor@example.org"), (160, 1580, "Good morning from the harbour")),
    )
    assert found.type == "SocialMediaPosting"
    assert (found.get("author"), found.get("text")) == ("Maya Lindqvist", "Our first harvest of pears!")


def test_a_chat_without_a_time_between_others_is_listed_too():
    (found,) = records(
        *BAR,
        (180, 130, "Chats", 56),
        *((180, 320, "Maya Lindqvist"), (960, 322, "09:12"), (180, 380, "See you at the harbour")),
        *((180, 520, "Noor · 4m ago"), (180, 580, "Thanks for the pictures")),
        *((180, 720, "Ida Berg"), (960, 722, "Mon"), (180, 780, "Your parcel is ready")),
        *((180, 920, "Tove"), (960, 922, "Sun"), (180, 980, "Thanks!")),
    )

    assert [entry["who"] for entry in found.entries("entries")] == [
        "Maya Lindqvist",
        "Noor",
        "Ida Berg",
        "Tove",
    ]


def test_a_list_is_not_named_by_its_first_entry():
    found = made(
        lists.tasks,
        "tasks",
        *((90, 130, "Water the plants"), (90, 330, "Call the bank"), (90, 530, "Sweep the stairs")),
    )
    assert found.get("name") is None
    assert [entry["name"] for entry in found.entries("entries")][-2:] == ["Call the bank", "Sweep the stairs"]


def test_a_list_is_named_by_the_word_above_it_rather_than_by_the_app():
    found = made(
        lists.tasks,
        "tasks",
        *((400, 130, "Nimbus", 60), (90, 330, "Your tasks", 50)),
        *((90, 530, "Water the plants"), (90, 730, "Call the bank"), (90, 930, "Sweep the stairs")),
    )
    assert found.get("name") == "Your tasks"


def test_mails_are_named_by_their_folder_and_not_by_a_subject():
    found = made(
        lists.mails,
        "mail",
        *((60, 130, "Inbox (3)"), (500, 130, "Sailing on Sunday", 60)),
        *((180, 320, "Maya Lindqvist"), (960, 322, "09:12"), (180, 380, "Sailing on Sunday")),
        *((180, 520, "Ida Berg"), (960, 522, "08:40"), (180, 580, "The minutes of our meeting")),
        *((180, 720, "Noor"), (960, 722, "Mon"), (180, 780, "Thank you")),
    )
    assert (found.type, found.get("name")) == ("MailList", "Inbox")
    assert [entry["who"] for entry in found.entries("entries")] == ["Maya Lindqvist", "Ida Berg", "Noor"]


def test_a_calendar_is_named_by_the_day_or_the_month_at_its_top():
    rows = ((90, 530, "Rowing"), (90, 590, "10:00 - 12:00"), (90, 730, "Choir"), (90, 790, "17:00 - 18:30"))
    found = made(lists.calendar, "calendar", (400, 130, "Planner", 60), (400, 300, "May 2026"), *rows)
    assert found.get("name") == "May 2026"
    each = ((90, 650, "4 May 2026"), (90, 850, "5 May 2026"))
    assert made(lists.calendar, "calendar", (400, 130, "Planner", 60), *rows, *each).get("name") == "Planner"


def test_a_table_of_spending_lists_what_was_bought_and_not_its_day_or_the_button_of_its_row():
    bought = [
        ("Oct 23", "Stationery", "-€23.00"),
        ("Oct 20", "School fees", "-€390.50"),
        ("Oct 17", "Rent", "-€600"),
    ]
    (found,) = records(
        *BAR,
        *(
            (60, 130, "All transactions", 56),
            (60, 260, "Date"),
            (300, 260, "Description"),
            (700, 260, "Amount"),
        ),
        *(
            (left, 360 + 100 * at, text)
            for at, row in enumerate(bought)
            for left, text in zip((60, 300, 700), row, strict=True)
        ),
        *((940, 360 + 100 * at, "Edit") for at in range(3)),
    )
    assert (found.type, found.get("name")) == ("Balance", "All transactions")
    assert found.entries("entries") == [{"name": name, "amount": amount} for _, name, amount in bought]
