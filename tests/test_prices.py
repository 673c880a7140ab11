"""Amounts are read in any usual writing, as a number and a currency."""

import time

import pytest

from rules.prices import Money
from tests.support.properties import REPEATED


@pytest.mark.parametrize(
    ("text", "value", "currency"),
    [
        ("€ -30.00", "-30.00", "EUR"),
        ("-$450.00", "-450.00", "USD"),
        ("1.234,56 €", "1234.56", "EUR"),
        ("1 234,56 EUR", "1234.56", "EUR"),
        ("1\u202f234,56 €", "1234.56", "EUR"),
        ("CHF 1'204.50", "1204.50", "CHF"),
        ("₹23,30,127.39", "2330127.39", "INR"),
        ("USD 12", "12", "USD"),
        ("¥ 88", "88", "CNY"),
        ("￥1,280", "1280", "CNY"),
        ("3,980円", "3980", "JPY"),
        ("RM 5.90", "5.90", "MYR"),
        ("R$ 1.250,00", "1250.00", "BRL"),
        ("HK$120", "120", "HKD"),
        ("一共 20块钱", "20", "CNY"),
        ("3.5万元", "35000", "CNY"),
        ("12,– €", "12", "EUR"),
        ("Total due: $84.20 by Friday", "84.20", "USD"),
    ],
)
def test_an_amount_is_a_number_and_a_currency(text, value, currency):
    price = Money(text).price(text)
    assert price is not None
    assert (price.value, price.currency) == (value, currency)


@pytest.mark.parametrize(
    "text", ["12.50", "成品量：20块松饼", "SF 12345", "Room 12", "v1.2.3", "10:45", "EUROPE 12"]
)
def test_other_numbers_are_none(text):
    assert Money(text).prices(text) == []


def test_the_screen_says_what_its_signs_and_bare_numbers_are():
    assert Money("Fare in AUD\n$12.00").price("$12.00").currency == "AUD"
    assert Money("合計 ¥880 ありがとう").price("¥880").currency == "JPY"
    assert Money("Sum €3.00").amount("12.50").normal() == {"value": "12.50", "currency": "EUR"}
    assert Money("Sum €3.00").amount("2026") is None
    assert Money("nothing").amount("12.50") is None


@pytest.mark.parametrize("unit", [*REPEATED, "$1,", "1 000 "])
def test_hostile_repetition_is_read_in_linear_time(unit):
    begun = time.process_time()
    Money("").prices(unit * 20_000)
    assert time.process_time() - begun < 3
