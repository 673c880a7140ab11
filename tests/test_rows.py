"""The entries of a list are found by a learned vote over the lines of its screen."""

from engines.lines import Line, Page
from rules import balances, lists, rows
from rules.layout import Layout
from rules.view import View


def page(*texts):
    """A page of texts `(left, top, text)`, or with a height behind them, else 40 pixels."""
    lines = []
    for left, top, text, *height in texts:
        tall = height[0] if height else 40
        lines.append(Line(text, 0.98, left, top, left + len(text) * tall // 2, top + tall))
    return Page(1080, 2340, lines)


def view(kind, *texts):
    shown = page((40, 20, "9:41"), (940, 20, "82%"), *texts)
    return View(shown, Layout(shown), kind, "Nimbus", None)


SETTINGS = (
    (60, 130, "Settings", 60),
    *((60, 300, "APPEARANCE", 30), (60, 400, "Theme", 44), (60, 460, "Follow the system", 34)),
    *((60, 600, "Dynamic colours", 44), (60, 660, "Take them from the wallpaper", 34)),
    *((60, 800, "BACKUP", 30), (60, 900, "Automatic backup", 44), (60, 960, "Once a day, at night", 34)),
    *((60, 1100, "Restore from a file", 44), (60, 1300, "Privacy policy", 44)),
)


def test_the_entries_of_settings_are_their_names_and_not_what_is_below_them():
    found = lists.settings(view("settings", *SETTINGS))
    named = [entry["name"] for entry in found.entries("entries")]
    wanted = {"Theme", "Dynamic colours", "Automatic backup", "Restore from a file", "Privacy policy"}
    assert wanted <= set(named)
    assert not {"Follow the system", "Once a day, at night"} & set(named)


def test_settings_go_without_a_list_that_is_not_sure(monkeypatch):
    monkeypatch.setattr(rows, "named", lambda layout, kind: rows.Named(layout.lines[:4], 0.3))
    found = lists.settings(view("settings", *SETTINGS))
    assert found.get("name") == "Settings"
    assert found.entries("entries") == []


def test_of_names_with_what_is_said_below_each_only_the_names_are_entries():
    texts = [
        ("Maya Lindqvist", 300),
        ("See you at the harbour", 350),
        ("Ida Berg", 500),
        ("I thought so", 550),
    ]
    texts += [("Noor", 700), ("Thank you so much", 750)]
    lines = [Line(text, 0.98, 180, top, 180 + 20 * len(text), top + 40) for text, top in texts]
    assert [line.text for line in rows.chosen([(0.9, line) for line in lines]).lines] == [
        "Maya Lindqvist", "Ida Berg", "Noor",
    ]  # fmt: skip


def test_as_many_lines_are_chosen_as_are_expected_to_be_right():
    lines = [
        Line(text, 0.98, 60, 300 * at, 600, 300 * at + 40) for at, text in enumerate(("Ada", "Bo", "Cy"))
    ]
    found = rows.chosen([(0.9, lines[0]), (0.8, lines[1]), (0.1, lines[2])])
    assert (found.lines, round(found.chance, 2)) == (lines[:2], 0.89)


def test_each_amount_of_an_account_belongs_to_one_name():
    spent = [(60, top, name, 44) for name, top in (("Groceries", 700), ("Train ticket", 900), ("Rent", 1100))]
    below = [(60, top + 60, "Everyday account", 32) for _, top, *_ in spent]
    amounts = [
        (860, one[1], amount, 44) for one, amount in zip(spent, ("€23.10", "€58.00", "€910.00"), strict=True)
    ]
    found = balances.balance(view("accounts", (60, 130, "Balance", 60), *spent, *below, *amounts))
    assert [(one["name"], one["amount"]) for one in found.entries("entries")] == [
        ("Groceries", "€23.10"), ("Train ticket", "€58.00"), ("Rent", "€910.00"),
    ]  # fmt: skip
