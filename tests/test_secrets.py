"""`python -m benchmarks.secrets`: valid values, the promised sizes, and a half whose texts stay unprinted."""

import hashlib
import importlib
import io
import random
import re
from collections import Counter

import pytest
from PIL import Image
from stdnum import iban, luhn
from stdnum import isbn as books

from benchmarks import frames, secrets, synthetic

KINDS = {
    "card", "iban", "national_id", "one_time_code", "password", "api_key", "private_key", "recovery_phrase",
}  # fmt: skip
# The numbers that python-stdnum knows, under its names.
KNOWN = {
    "cn": "cn.ric", "us": "us.ssn", "nhs": "gb.nhs", "aadhaar": "in_.aadhaar", "pan": "in_.pan",
    "de": "de.idnr", "ch": "ch.ssn", "fr": "fr.nir", "es": "es.dni", "nie": "es.nie", "pt": "pt.nif",
    "br": "br.cpf", "it": "it.codicefiscale", "nl": "nl.bsn", "pl": "pl.pesel", "inn": "ru.inn",
    "kr": "kr.rrn", "jp": "jp.in_",
}  # fmt: skip


@pytest.fixture(scope="module")
def screens():
    return frames.screens(seed=1)


def made(description, number=50):
    chance = random.Random(description)
    return [synthetic.make(description, chance) for _ in range(number)]


@pytest.mark.parametrize("country", KNOWN)
def test_identity_numbers_have_right_check_digits(country):
    known = importlib.import_module(f"stdnum.{KNOWN[country]}")

    numbers = made(f"id {country}")
    if country == "us":
        numbers = [number.replace(" ", "-") for number in numbers]
    assert [number for number in numbers if not known.is_valid(number)] == []


def test_identity_numbers_that_the_library_does_not_know_match_published_examples():
    # The examples of ICAO Doc 9303 part 4, and the ones with which each register explains its number.
    assert synthetic.mrz_check("L898902C3") == "6"
    assert synthetic.mrz_check("740812") == "2"
    assert synthetic.singapore_check("S", "1234567") == "D"
    assert synthetic.hong_kong_check("A", "123456") == "3"
    assert synthetic.taiwan_check("A", "12345678") == "9"
    for number in made("id snils"):
        digits, check = number[:11].replace("-", ""), int(number[-2:])
        assert sum(int(digit) * (9 - index) for index, digit in enumerate(digits)) % 101 % 100 == check
    for number in made("mrz GBR"):
        assert len(number) == 44
        assert synthetic.mrz_check(number[:10] + number[13:20] + number[21:43]) == number[43]


@pytest.mark.parametrize("network", synthetic.NETWORKS)
def test_cards_have_a_right_check_digit_and_their_networks_length(network):
    for number in made(f"card {network}"):
        digits = re.sub(r"\D", "", number)
        assert luhn.is_valid(digits)
        assert len(digits) == synthetic.NETWORKS[network][1]


@pytest.mark.parametrize("country", synthetic.ACCOUNTS)
def test_accounts_have_right_check_digits(country):
    # Belgium's are also checked against a list of banks, which made-up accounts are not with.
    known = country != "BE"
    assert [
        number for number in made(f"iban {country}") if not iban.is_valid(number, check_country=known)
    ] == []


def test_books_and_phones_have_right_check_digits():
    assert all(books.is_valid(number) for number in made("isbn"))
    assert all(luhn.is_valid(number) for number in made("imei"))


@pytest.mark.parametrize("length", [12, 18, 24])
def test_recovery_phrases_have_a_right_checksum(length):
    words = synthetic.WORDS.read_text().split()
    for phrase in made(f"phrase {length}"):
        bits = "".join(f"{words.index(word):011b}" for word in phrase.split())
        entropy = int(bits[: -length // 3], 2).to_bytes(length * 4 // 3)
        assert bits[-length // 3 :] == f"{hashlib.sha256(entropy).digest()[0]:08b}"[: length // 3]


def test_the_set_has_the_promised_sizes(screens):
    secret = {screen.lines: screen.frame for screen in screens if screen.frame.kinds}
    harmless = {screen.lines: screen.frame for screen in screens if not screen.frame.kinds}
    languages = Counter(frame.group for frame in secret.values())

    assert len(secret) >= 500
    assert len(harmless) >= 300
    assert {kind for frame in secret.values() for kind in frame.kinds} == KINDS
    assert {frame.half for frame in secret.values()} == set(secrets.HALVES)
    assert min(languages["en"], languages["zh"], languages["others"]) >= len(secret) / 6


def test_every_secret_is_marked_and_nothing_of_the_notation_is_left(screens):
    for screen in screens:
        text = "\n".join(screen.lines)
        assert bool(screen.frame.kinds) == any(screen.secret), text
        assert not re.search("[⟦⟧‹›\ue000\ue001]| :: ", text), text


def test_screens_depend_on_the_seed_alone(screens):
    assert frames.screens(seed=1) == screens
    assert frames.screens(seed=2) != screens


def test_only_the_tuning_half_lists_its_mistakes(monkeypatch, capsys):
    monkeypatch.setattr(secrets.sensitive, "find", lambda lines: [])
    monkeypatch.setattr("sys.argv", ["secrets", "--list-missed", "--half", "judging"])
    secrets.main()
    quiet = capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["secrets", "--list-missed", "--half", "tuning"])
    secrets.main()

    assert "MISSED" not in quiet
    assert "all secrets" in quiet
    assert "MISSED: " in capsys.readouterr().out


def test_an_interval_holds_the_share_and_narrows_with_the_number():
    assert secrets.interval(0.5, 100) == pytest.approx((0.404, 0.596), abs=0.001)
    assert secrets.interval(1.0, 20) == pytest.approx((0.839, 1.0), abs=0.001)
    assert secrets.interval(0.0, 0) == (0.0, 1.0)


@pytest.mark.slow
def test_screens_are_drawn_in_all_manners(screens):
    chance = random.Random(1)
    manners = set()
    for screen in screens[:25]:
        picture = frames.draw(screen, chance)
        manners.add(picture.manner)
        with Image.open(io.BytesIO(picture.content)) as image:
            assert min(image.size) >= 1000

    assert len(manners) >= 4
