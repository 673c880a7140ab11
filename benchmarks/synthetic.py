"""Values that look real and belong to nobody, for `benchmarks.secrets`: cards, accounts, identities, keys.

Each is made from the public description of its format, with right check digits. Only the words of BIP 39 are
read from `rules/`: a set that shared a mistake with the rules would not show it. Sources:

- cards: ISO/IEC 7812-1 (Luhn), the networks' published ranges and groupings
- accounts: ISO 13616 and the SWIFT IBAN registry; national check digits as the registry's banks publish them
- identity numbers: GB 11643 (CN), SSA (US), HMRC NIM39110 and the NHS data dictionary (GB), ICAO Doc 9303
  (passports), UIDAI (Verhoeff, IN), BZSt (ISO 7064 MOD 11,10, DE), INSEE (FR), Orden INT/2058/2008 (ES), DM
  23/12/1976 (IT), the national registers for CH, NL, PL, PT, BR, RU, JP, KR, HK, TW and SG
- keys and tokens: the issuers' documentation and GitHub's table of supported secret scanning patterns
- recovery phrases: BIP 39; Bitcoin keys: Base58Check; BitLocker: Microsoft's description of the 48 digits
"""

import base64
import hashlib
import random
import re
import string
from collections.abc import Callable
from pathlib import Path

WORDS = Path(__file__).parents[1] / "rules" / "bip39-english.txt"
UPPER = string.ascii_uppercase + string.digits
MIXED = string.ascii_letters + string.digits
SYMBOLS = "!#$%&*+-=?@^_"
PLAIN_WORDS = (
    "otter", "maple", "copper", "lantern", "river", "pepper", "falcon", "winter", "sofa", "tiger", "kiosk",
    "mango", "cactus", "meadow", "rocket", "violet", "cobalt", "walnut", "harbor", "pixel",
)  # fmt: skip
# What a letter of `like` stands for; anything else stands for itself.
CLASSES = {
    "#": string.digits,
    "@": string.ascii_uppercase,
    "%": string.ascii_lowercase,
    "&": UPPER,
    "*": MIXED,
    "$": "0123456789abcdef",
    "~": string.ascii_letters,
    "^": string.ascii_uppercase + "234567",  # base 32
    "§": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",  # Bech32, and below in capitals
    "¶": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# Network: beginnings, length, groups.
NETWORKS: dict[str, tuple[tuple[str, ...], int, tuple[int, ...]]] = {
    "visa": (("4532", "4916", "4485", "4024"), 16, (4, 4, 4, 4)),
    "mastercard": (("51", "53", "55", "2221", "2720"), 16, (4, 4, 4, 4)),
    "amex": (("34", "37"), 15, (4, 6, 5)),
    "discover": (("6011", "65"), 16, (4, 4, 4, 4)),
    "jcb": (("3528", "3589"), 16, (4, 4, 4, 4)),
    "diners": (("36",), 14, (4, 6, 4)),
    "unionpay": (("621226", "622202", "621700", "623058"), 19, (4, 4, 4, 4, 3)),
    "maestro": (("5018", "6759"), 16, (4, 4, 4, 4)),
    "mir": (("2200", "2202"), 16, (4, 4, 4, 4)),
}


def make(description: str, chance: random.Random) -> str:
    """The value that `description` names: a maker and its arguments, as between the brackets of a frame.

    Some values have several lines. Raises `KeyError` for an unknown maker.
    """
    name, _, rest = description.partition(" ")
    return MAKERS[name](rest, chance)


def like(pattern: str, chance: random.Random) -> str:
    """A random text of the pattern: `CLASSES` name its letters, `{n}` repeats the one before."""
    repeated = re.sub(r"(.)\{(\d+)\}", lambda found: found[1] * int(found[2]), pattern)
    return "".join(chance.choice(CLASSES[letter]) if letter in CLASSES else letter for letter in repeated)


def luhn(digits: str) -> str:
    """The check digit of `digits`, which do not have it yet."""
    total = 0
    for index, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if index % 2 == 0 else 1)
        total += doubled // 10 + doubled % 10
    return str(-total % 10)


def mrz_check(text: str) -> str:
    """The check digit of a field of a machine-readable zone."""
    values = [0 if letter == "<" else int(letter, 36) for letter in text]
    return str(sum(value * (7, 3, 1)[index % 3] for index, value in enumerate(values)) % 10)


def singapore_check(series: str, digits: str) -> str:
    total = _weighed(digits, (2, 7, 6, 5, 4, 3, 2)) + (4 if series == "T" else 0)
    return "JZIHGFEDCBA"[total % 11]


def hong_kong_check(letter: str, digits: str) -> str:
    total = 36 * 9 + (ord(letter) - 55) * 8 + _weighed(digits, range(7, 1, -1))
    return "0123456789A"[-total % 11]


def taiwan_check(letter: str, digits: str) -> str:
    """For the letters A to H, whose codes are in a row."""
    code = ord(letter) - 55
    return str(-(code // 10 + code % 10 * 9 + _weighed(digits, range(8, 0, -1))) % 10)


def card(arguments: str, chance: random.Random) -> str:
    options = arguments.split()
    network = next((name for name in options if name in NETWORKS), "") or chance.choice(
        ("visa", "visa", "mastercard", "mastercard", "amex", "discover", "jcb", "unionpay")
    )
    beginnings, length, groups = NETWORKS[network]
    begun = chance.choice(beginnings)
    digits = begun + _digits(chance, length - len(begun) - 1)
    digits += luhn(digits)
    written = next((name for name in options if name not in NETWORKS), "") or chance.choice(
        ("plain", "spaced", "spaced", "dashes")
    )
    between = {"plain": "", "spaced": " ", "dashes": "-"}[written]
    return between.join(_grouped(digits, groups))


def iban(arguments: str, chance: random.Random) -> str:
    options = arguments.split()
    country = next((name for name in options if name in ACCOUNTS), "") or chance.choice(list(ACCOUNTS))
    account = ACCOUNTS[country](chance)
    number = str(98 - int(_as_number(account + country + "00")) % 97).zfill(2)
    whole = country + number + account
    if "bare" in options:
        return " ".join([number, *_grouped(account, (4,) * 6)])
    if "spaced" in options or ("plain" not in options and chance.random() < 0.6):
        return " ".join(whole[index : index + 4] for index in range(0, len(whole), 4))
    return whole


def identity(country: str, chance: random.Random) -> str:
    return IDENTITIES[country](chance)


def mrz(country: str, chance: random.Random) -> str:
    """The second line of a passport's machine-readable zone, with its five check digits."""
    number = like("#########", chance)
    born = _birth(chance)[2:]
    expires = f"{chance.randint(28, 35)}{chance.randint(1, 12):02}{chance.randint(1, 28):02}"
    parts = [number + mrz_check(number), born + mrz_check(born), expires + mrz_check(expires)]
    personal = "<" * 14 + "0"
    check = mrz_check("".join(parts) + personal)
    return f"{parts[0]}{country}{parts[1]}{chance.choice('MF')}{parts[2]}{personal}{check}"


def password(form: str, chance: random.Random) -> str:
    word, other, third = (chance.choice(PLAIN_WORDS) for _ in range(3))
    number = chance.randint(10, 9999)
    if form == "human":
        return chance.choice(
            (f"{word.title()}{chance.randint(1970, 2026)}!", f"{word}{number}", f"{word.title()}@{number}",
             f"{word}_{other}{number % 100}", f"{word[0].upper()}{word[1:]}#{number}")
        )  # fmt: skip
    if form == "words":
        return chance.choice(
            (f"{word}-{other}-{number}", f"{word} {other} {third}", f"{word}{other}{number}")
        )
    if form.startswith("strong"):
        safe = "_-.~" if form.endswith("url") else SYMBOLS
        letters = [*like("@%%##***********", chance)[: chance.randint(11, 16)], chance.choice(safe)]
        chance.shuffle(letters)
        return like("%", chance) + "".join(letters)
    return password(chance.choice(("human", "words", "strong")), chance).replace(" ", "-")


def phrase(arguments: str, chance: random.Random) -> str:
    """A BIP 39 phrase with its checksum: `12`, and `grid`, `list` or `columns` for how it is set out."""
    length, _, layout = arguments.partition(" ")
    words = _mnemonic(int(length), chance)
    numbered = [f"{index}. {word}" for index, word in enumerate(words, 1)]
    if layout == "list":
        return "\n".join(numbered)
    if layout == "grid":
        return "\n".join("   ".join(numbered[index : index + 3]) for index in range(0, len(words), 3))
    if layout == "columns":
        half = len(words) // 2
        return "\n".join(f"{one}    {other}" for one, other in zip(words[:half], words[half:], strict=True))
    return " ".join(words)


def pem(label: str, chance: random.Random) -> str:
    begun = "b3BlbnNzaC1rZXktdjEAAAAA" if label.startswith("OPENSSH") else "MIIE"
    body = begun + like("*{240}", chance)[: chance.choice((100, 164, 236))] + "=="
    lines = [body[index : index + 64] for index in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def jwt(_: str, chance: random.Random) -> str:
    claims = f'{{"sub":"{_digits(chance, 8)}","iat":17{_digits(chance, 8)}}}'
    parts = [b'{"alg":"HS256","typ":"JWT"}', claims.encode(), chance.randbytes(32)]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def wif(_: str, chance: random.Random) -> str:
    content = b"\x80" + chance.randbytes(32) + b"\x01"
    content += hashlib.sha256(hashlib.sha256(content).digest()).digest()[:4]
    number, letters = int.from_bytes(content), ""
    while number:
        number, index = divmod(number, 58)
        letters = BASE58[index] + letters
    return letters


def bitlocker(_: str, chance: random.Random) -> str:
    return "-".join(f"{11 * chance.randrange(1 << 16):06}" for _ in range(8))


def date(form: str, chance: random.Random) -> str:
    day, month, year = chance.randint(1, 28), chance.randint(1, 12), chance.randint(2024, 2031)
    if form == "my":
        return f"{month:02}/{year % 100}"
    return chance.choice((f"{year}-{month:02}-{day:02}", f"{day:02}/{month:02}/{year}"))


def isbn(_: str, chance: random.Random) -> str:
    digits = "978" + _digits(chance, 9)
    return f"{digits[:3]}-{digits[3]}-{digits[4:8]}-{digits[8:]}-{_ean_check(digits)}"


def imei(_: str, chance: random.Random) -> str:
    digits = "35" + _digits(chance, 12)
    return digits + luhn(digits)


MAKERS: dict[str, Callable[[str, random.Random], str]] = {
    "like": like, "card": card, "iban": iban, "id": identity, "mrz": mrz, "password": password,
    "phrase": phrase, "pem": pem, "jwt": jwt, "wif": wif, "bitlocker": bitlocker, "date": date, "isbn": isbn,
    "imei": imei,
}  # fmt: skip


# ---------------------------------------------------------------------------------- accounts without "XX00"


def _be(chance: random.Random) -> str:
    digits = _digits(chance, 10)
    return digits + f"{int(digits) % 97 or 97:02}"


def _es(chance: random.Random) -> str:
    bank, account = like("2###0###", chance), _digits(chance, 10)

    def check(digits: str) -> str:
        rest = 11 - _weighed(digits, (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11
        return str({10: 1, 11: 0}.get(rest, rest))

    return bank + check("00" + bank) + check(account) + account


def _fr(chance: random.Random) -> str:
    bank, branch, account = like("30###", chance), _digits(chance, 5), _digits(chance, 11)
    key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
    return f"{bank}{branch}{account}{key:02}"


def _it(chance: random.Random) -> str:
    digits = like("0####0####", chance) + like("0{5}#######", chance)
    return _italian_check(digits) + digits


def _nl(chance: random.Random) -> str:
    while True:
        digits = "0" + _digits(chance, 9)
        if _weighed(digits, range(10, 0, -1)) % 11 == 0:
            return chance.choice(("INGB", "ABNA", "RABO")) + digits


def _pl(chance: random.Random) -> str:
    bank = like("1######", chance)
    return bank + str(-_weighed(bank, (3, 9, 7, 1, 3, 9, 7)) % 10) + _digits(chance, 16)


def _pt(chance: random.Random) -> str:
    digits = like("00##0###", chance) + _digits(chance, 11)
    return digits + f"{98 - int(digits) * 100 % 97:02}"


ACCOUNTS: dict[str, Callable[[random.Random], str]] = {
    "AT": lambda chance: _digits(chance, 16),
    "BE": _be,
    "CH": lambda chance: like("08###############", chance),
    "DE": lambda chance: like("37040044##########", chance),
    "ES": _es,
    "FR": _fr,
    "GB": lambda chance: chance.choice(("MONZ", "BARC", "NWBK")) + _digits(chance, 14),
    "IE": lambda chance: "AIBK" + _digits(chance, 14),
    "IT": _it,
    "NL": _nl,
    "PL": _pl,
    "PT": _pt,
    "SE": lambda chance: _digits(chance, 20),
}


# ------------------------------------------------------------------------------------------ identity numbers


def _cn(chance: random.Random) -> str:
    region = chance.choice(("110105", "110108", "120101", "310104", "310110"))
    digits = region + _birth(chance) + _digits(chance, 3)
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return digits + "10X98765432"[_weighed(digits, weights) % 11]


def _us(chance: random.Random) -> str:
    area = chance.choice([number for number in range(1, 900) if number != 666])
    between = chance.choice(("-", "-", "-", " "))
    return f"{area:03}{between}{chance.randint(1, 99):02}{between}{chance.randint(1, 9999):04}"


def _nino(chance: random.Random) -> str:
    letters = chance.choice(("AB", "JC", "NR", "PW", "SE", "WL", "YH"))
    number = letters + _digits(chance, 6) + chance.choice("ABCD")
    return chance.choice((number, " ".join(_grouped(number, (2, 2, 2, 2, 1)))))


def _nhs(chance: random.Random) -> str:
    digits, check = _by_eleven(chance, 9, range(10, 1, -1))
    return " ".join(_grouped(digits + check, (3, 3, 4)))


def _aadhaar(chance: random.Random) -> str:
    digits = str(chance.randint(2, 9)) + _digits(chance, 10)
    return " ".join(_grouped(digits + _verhoeff(digits), (4, 4, 4)))


def _nric(chance: random.Random) -> str:
    digits, series = _digits(chance, 7), chance.choice("ST")
    return series + digits + singapore_check(series, digits)


def _hk(chance: random.Random) -> str:
    letter, digits = chance.choice("ABCDEGHKPRVYZ"), _digits(chance, 6)
    return f"{letter}{digits}({hong_kong_check(letter, digits)})"


def _tw(chance: random.Random) -> str:
    letter = chance.choice("ABCDEFGH")
    digits = chance.choice("12") + _digits(chance, 7)
    return letter + digits + taiwan_check(letter, digits)


def _de(chance: random.Random) -> str:
    digits = list(string.digits)
    chance.shuffle(digits)
    digits[9] = digits[chance.randrange(9)]
    if digits[0] == "0":
        digits.append(digits.pop(0))
    product = 10
    for digit in digits:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return " ".join(_grouped("".join(digits) + str((11 - product) % 10), (2, 3, 3, 3)))


def _ch(chance: random.Random) -> str:
    digits = "756" + _digits(chance, 9)
    return ".".join(_grouped(digits + _ean_check(digits), (3, 4, 4, 2)))


def _nir(chance: random.Random) -> str:
    digits = f"{chance.randint(1, 2)}{_birth(chance)[2:6]}{chance.choice((13, 31, 33, 59, 69, 75, 78))}"
    digits += f"{chance.randint(1, 300):03}{chance.randint(1, 400):03}"
    number = digits + f"{97 - int(digits) % 97:02}"
    return chance.choice((number, " ".join(_grouped(number, (1, 2, 2, 2, 3, 3, 2)))))


def _dni(chance: random.Random) -> str:
    digits = _digits(chance, 8)
    return digits + "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23]


def _nie(chance: random.Random) -> str:
    first, digits = chance.randrange(3), _digits(chance, 7)
    return "XYZ"[first] + digits + "TRWAGMYFPDXBNJZSQVHLCKE"[int(f"{first}{digits}") % 23]


def _nif(chance: random.Random) -> str:
    digits = chance.choice("12") + _digits(chance, 7)
    rest = 11 - _weighed(digits, range(9, 1, -1)) % 11
    return " ".join(_grouped(digits + str(rest if rest < 10 else 0), (3, 3, 3)))


def _cpf(chance: random.Random) -> str:
    digits = _digits(chance, 9)
    for length in (10, 11):
        rest = _weighed(digits, range(length, 1, -1)) * 10 % 11
        digits += str(rest % 10)
    return f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"


def _codice_fiscale(chance: random.Random) -> str:
    born = _birth(chance)
    names = chance.choice(("RSSMRA", "CNTGLI", "BNCLCU", "FRRSRA"))
    month = "ABCDEHLMPRST"[int(born[4:6]) - 1]
    day = int(born[6:]) + chance.choice((0, 40))
    town = chance.choice(("H501", "F205", "L219", "A944"))
    number = f"{names}{born[2:4]}{month}{day:02}{town}"
    return number + _italian_check(number)


def _bsn(chance: random.Random) -> str:
    digits, check = _by_eleven(chance, 8, [-weight for weight in range(9, 1, -1)])
    return digits + check


def _pesel(chance: random.Random) -> str:
    born = _birth(chance)
    month = int(born[4:6]) + (20 if born.startswith("20") else 0)
    digits = f"{born[2:4]}{month:02}{born[6:]}{_digits(chance, 4)}"
    return digits + str(-_weighed(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def _snils(chance: random.Random) -> str:
    digits = _digits(chance, 9)
    check = _weighed(digits, range(9, 0, -1)) % 101 % 100
    return f"{digits[:3]}-{digits[3:6]}-{digits[6:]} {check:02}"


def _inn(chance: random.Random) -> str:
    digits = "77" + _digits(chance, 8)
    digits += str(_weighed(digits, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)
    return digits + str(_weighed(digits, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10)


def _jp(chance: random.Random) -> str:
    digits = _digits(chance, 11)
    rest = _weighed(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return " ".join(_grouped(digits + str(0 if rest <= 1 else 11 - rest), (4, 4, 4)))


def _kr(chance: random.Random) -> str:
    born = _birth(chance)
    sex = chance.choice("12" if born.startswith("19") else "34")
    digits = born[2:] + sex + f"{chance.randint(0, 95):02}" + _digits(chance, 3)
    check = (11 - _weighed(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return f"{digits[:6]}-{digits[6:]}{check}"


IDENTITIES: dict[str, Callable[[random.Random], str]] = {
    "cn": _cn, "us": _us, "nino": _nino, "nhs": _nhs, "aadhaar": _aadhaar, "nric": _nric, "hk": _hk,
    "tw": _tw, "de": _de, "ch": _ch, "fr": _nir, "es": _dni, "nie": _nie, "pt": _nif, "br": _cpf,
    "it": _codice_fiscale, "nl": _bsn, "pl": _pesel, "snils": _snils, "inn": _inn, "jp": _jp, "kr": _kr,
    "pan": lambda chance: like("@@@P@####@", chance),
}  # fmt: skip


# --------------------------------------------------------------------------------------------------- digits


def _digits(chance: random.Random, length: int) -> str:
    return "".join(chance.choice(string.digits) for _ in range(length))


def _birth(chance: random.Random) -> str:
    return f"{chance.randint(1950, 2007)}{chance.randint(1, 12):02}{chance.randint(1, 28):02}"


def _grouped(text: str, lengths: tuple[int, ...]) -> list[str]:
    groups = []
    for length in lengths:
        groups.append(text[:length])
        text = text[length:]
    return groups


def _weighed(digits: str, weights: tuple[int, ...] | list[int] | range) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _by_eleven(chance: random.Random, length: int, weights: list[int] | range) -> tuple[str, str]:
    """Digits whose check digit by modulus 11 is one digit, and it."""
    while True:
        digits = like("9", chance) + _digits(chance, length - 1)
        check = -_weighed(digits, weights) % 11
        if check < 10:
            return digits, str(check)


def _as_number(text: str) -> str:
    return "".join(str(int(letter, 36)) for letter in text)


def _ean_check(digits: str) -> str:
    return str(-_weighed(digits, [1, 3] * (len(digits) // 2)) % 10)


def _italian_check(text: str) -> str:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    values = [int(letter) if letter.isdecimal() else ord(letter) - 65 for letter in text]
    return chr(65 + sum(value if index % 2 else odd[value] for index, value in enumerate(values)) % 26)


def _verhoeff(digits: str) -> str:
    """The check digit in the dihedral group D5."""

    def product(one: int, other: int) -> int:
        if one < 5:
            return (one + other) % 5 + (0 if other < 5 else 5)
        return (one - other) % 5 + (5 if other < 5 else 0)

    permutation = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    check = 0
    for index, digit in enumerate(reversed(digits), 1):
        value = int(digit)
        for _ in range(index % 8):
            value = permutation[value]
        check = product(check, value)
    return next(str(digit) for digit in range(10) if product(check, digit) == 0)


def _mnemonic(length: int, chance: random.Random) -> list[str]:
    words = WORDS.read_text().split()
    entropy = chance.randbytes(length * 4 // 3)
    bits = f"{int.from_bytes(entropy):0{len(entropy) * 8}b}"
    bits += f"{hashlib.sha256(entropy).digest()[0]:08b}"[: length // 3]
    return [words[int(bits[index : index + 11], 2)] for index in range(0, len(bits), 11)]
