"""The check digits of numbers, each by its public description.

A check takes the number as it is written without blanks and signs, and says whether its check digits are
right; a number of another form has none.
"""

import functools
from collections.abc import Callable, Sequence


def luhn(digits: str) -> bool:
    """ISO/IEC 7812-1: cards, Swedish, Canadian and South African numbers."""
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return not (sum(map(int, digits[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled)) % 10


def by_97(iban: str) -> bool:
    """ISO 7064, mod 97-10, as in an IBAN."""
    moved = iban[4:] + iban[:4]
    if not (moved.isascii() and moved.isalnum()):
        return False
    return int("".join(str(int(character, 36)) for character in moved)) % 97 == 1


def weighed(digits: str, weights: Sequence[int]) -> int:
    """The sum of the digits, each with its weight."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def is_day(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def china(number: str) -> bool:
    """GB 11643: a day of birth, and ISO 7064 mod 11-2."""
    digits, check = number[:-1], number[-1].upper()
    year = int(digits[6:10])
    if digits[0] in "09" or not 1900 <= year <= 2099 or not is_day(digits[10:12], digits[12:14]):
        return False
    rest = sum(int(digit) * (1 << 17 - place) for place, digit in enumerate(digits)) % 11
    return check == "10X98765432"[rest]


def _usa(number: str) -> bool:
    """Social Security: no check digit, but numbers that are not given (SSA, RM 10201.035)."""
    return (
        number[:3] not in ("000", "666") and number[0] != "9" and number[3:5] != "00" and number[5:] != "0000"
    )


def _germany(number: str) -> bool:
    """The tax number IdNr: ISO 7064 mod 11,10, and one digit of the first ten that comes again."""
    product = 10
    for digit in number[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return number[0] != "0" and len(set(number[:10])) in (8, 9) and (11 - product) % 10 == int(number[10])


def _france(number: str) -> bool:
    """NIR: 97 less the rest of its first 13 digits; 2A and 2B stand for Corsica."""
    plain = number.upper().replace("2A", "19").replace("2B", "18")
    month = int(number[3:5])
    known = 1 <= month <= 12 or 20 <= month <= 42 or month >= 50
    return plain.isdigit() and known and 97 - int(plain[:13]) % 97 == int(plain[13:])


def _spain(number: str) -> bool:
    """DNI and NIE: a letter by the rest of 23."""
    number = number.upper()
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return digits.isdigit() and "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23] == number[-1]


_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ),
        strict=True,
    )
)


def _italy(number: str) -> bool:
    """Codice fiscale (DM 12/3/1974)."""
    number = number.upper()
    total = sum(_ODD[one] for one in number[:15:2])
    total += sum(int(one) if one.isdigit() else ord(one) - 65 for one in number[1:15:2])
    return chr(65 + total % 26) == number[15]


def _brazil(number: str) -> bool:
    """CPF: two digits, each by the rest of 11."""
    for length in (9, 10):
        rest = weighed(number, range(length + 1, 1, -1)) * 10 % 11 % 10
        if rest != int(number[length]):
            return False
    return len(set(number)) > 1


def _netherlands(number: str) -> bool:
    """BSN: the test of eleven."""
    return len(set(number)) > 1 and weighed(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _poland(number: str) -> bool:
    """PESEL: a day of birth, whose month tells the century, and weights 1, 3, 7, 9."""
    month = int(number[2:4]) % 20
    return is_day(f"{month:02}", number[4:6]) and weighed(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


@functools.cache
def _verhoeff_tables() -> tuple[list[list[int]], list[list[int]]]:
    dihedral = [
        [(a + b) % 5 + 5 * (b > 4) if a < 5 else (a - b) % 5 + 5 * (b < 5) for b in range(10)]
        for a in range(10)
    ]
    first = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
    turned = [list(range(10))]
    for _ in range(7):
        turned.append([turned[-1][digit] for digit in first])
    return dihedral, turned


def _india(number: str) -> bool:
    """Aadhaar: Verhoeff."""
    dihedral, turned = _verhoeff_tables()
    check = 0
    for place, digit in enumerate(reversed(number)):
        check = dihedral[check][turned[place % 8][int(digit)]]
    return number[0] not in "01" and check == 0


def _japan(number: str) -> bool:
    """My Number: weights 6 … 2, 7 … 2 (Ordinance 85 of 2014)."""
    rest = weighed(number, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return int(number[11]) == (0 if rest < 2 else 11 - rest)


def _korea(number: str) -> bool:
    """RRN: a day of birth and the century. Numbers since October 2020 have no check digit."""
    return is_day(number[2:4], number[4:6]) and number[6] in "12345678"


def _russia_snils(number: str) -> bool:
    return weighed(number, (9, 8, 7, 6, 5, 4, 3, 2, 1)) % 101 % 100 == int(number[9:])


def _russia_inn(number: str) -> bool:
    weights = (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
    if len(number) == 10:
        return weighed(number[:9], weights[2:]) % 11 % 10 == int(number[9])
    ten = weighed(number[:10], weights[1:]) % 11 % 10
    return ten == int(number[10]) and weighed(number[:11], weights) % 11 % 10 == int(number[11])


def _by_birth_and_luhn(number: str) -> bool:
    """Sweden (YYMMDD-NNNC) and South Africa (YYMMDD…): a day of birth, and Luhn."""
    digits = number[-10:] if len(number) == 12 else number
    return is_day(digits[2:4], f"{int(digits[4:6]) % 60:02}") and luhn(digits)


def _finland(number: str) -> bool:
    """HETU: a day of birth, and a sign by the rest of 31."""
    digits = number[:6] + number[7:10]
    return (
        is_day(number[2:4], number[:2])
        and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(digits) % 31] == number[10].upper()
    )


def _belgium(number: str) -> bool:
    """97 less the rest of the first nine digits; with a 2 before for births since 2000."""
    return int(number[9:]) in (97 - int(number[:9]) % 97, 97 - int(f"2{number[:9]}") % 97)


def _ean(number: str) -> bool:
    """The Swiss AHV number has the check digit of an EAN."""
    return weighed(number, (1, 3) * 7) % 10 == 0


def _turkey(number: str) -> bool:
    odd, even = sum(map(int, number[:9:2])), sum(map(int, number[1:8:2]))
    tenth = (7 * odd - even) % 10
    return number[0] != "0" and tenth == int(number[9]) and sum(map(int, number[:10])) % 10 == int(number[10])


def _portugal(number: str) -> bool:
    rest = weighed(number, (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return int(number[8]) == (0 if rest < 2 else 11 - rest)


def _hong_kong(number: str) -> bool:
    """HKID: one or two letters, six digits, a check sign by the rest of 11."""
    number = number.upper()
    body, check = number[:-1].rjust(8), number[-1]
    values = [36 if one == " " else int(one, 36) for one in body]
    total = sum(value * weight for value, weight in zip(values, range(9, 1, -1), strict=True))
    return "0123456789A"[-total % 11] == check


def _taiwan(number: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0].upper()) + 10
    return (letter // 10 + letter % 10 * 9 + weighed(number[1:], (8, 7, 6, 5, 4, 3, 2, 1, 1))) % 10 == 0


def _singapore(number: str) -> bool:
    number = number.upper()
    total = weighed(number[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    table = {
        "S": "JZIHGFEDCBA",
        "T": "JZIHGFEDCBA",
        "F": "XWUTRQPNMLK",
        "G": "XWUTRQPNMLK",
        "M": "XWUTRQPNJLK",
    }
    return table[number[0]][total % 11 if number[0] != "M" else 10 - total % 11] == number[8]


def _thailand(number: str) -> bool:
    return (11 - weighed(number, range(13, 1, -1)) % 11) % 10 == int(number[12])


def _chile(number: str) -> bool:
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(number[:-1])))
    return "0123456789K0"[11 - total % 11] == number[-1].upper()


def _australia(number: str) -> bool:
    """TFN: weights 1, 4, 3, 7, 5, 8, 6, 9, 10, by 11."""
    return weighed(number, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _czechia(number: str) -> bool:
    month = int(number[2:4]) % 50 % 20
    return is_day(f"{month:02}", number[4:6]) and (len(number) == 9 or int(number) % 11 == 0)


def _norway(number: str) -> bool:
    first = -weighed(number[:9], (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11
    second = -weighed(number[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return is_day(number[2:4], number[:2]) and f"{first}{second}" == number[9:]


def _denmark(number: str) -> bool:
    return is_day(number[2:4], number[:2])


def _mexico(number: str) -> bool:
    """CURP: a day of birth, and the sum of the values by 10."""
    signs = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(signs.index(one) * (18 - place) for place, one in enumerate(number.upper()[:17]))
    return is_day(number[6:8], number[8:10]) and -total % 10 == int(number[17])


def bitlocker(number: str) -> bool:
    """Eight groups of six digits, each divisible by 11, of a value below 2^16."""
    groups = [int(number[place : place + 6]) for place in range(0, 48, 6)]
    return all(group % 11 == 0 and group < 11 * 2**16 for group in groups)


def machine_readable(field: str, check: str) -> bool:
    """ICAO 9303: weights 7, 3, 1; a filler is 0, a letter 10 and up."""
    total = sum((0 if one == "<" else int(one, 36)) * (7, 3, 1)[place % 3] for place, one in enumerate(field))
    return str(total % 10) == ("0" if check == "<" else check)


CHECKS: dict[str, Callable[[str], bool]] = {
    "australia": _australia,
    "belgium": _belgium,
    "brazil": _brazil,
    "chile": _chile,
    "china": china,
    "czechia": _czechia,
    "denmark": _denmark,
    "ean": _ean,
    "finland": _finland,
    "france": _france,
    "germany": _germany,
    "hong_kong": _hong_kong,
    "india": _india,
    "italy": _italy,
    "japan": _japan,
    "korea": _korea,
    "luhn": luhn,
    "mexico": _mexico,
    "netherlands": _netherlands,
    "norway": _norway,
    "poland": _poland,
    "portugal": _portugal,
    "russia_inn": _russia_inn,
    "russia_snils": _russia_snils,
    "singapore": _singapore,
    "south_africa": _by_birth_and_luhn,
    "spain": _spain,
    "sweden": _by_birth_and_luhn,
    "taiwan": _taiwan,
    "thailand": _thailand,
    "turkey": _turkey,
    "usa": _usa,
}
