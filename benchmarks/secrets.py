"""`python -m benchmarks.secrets`: how many secrets the rules for what is sensitive find, and false alarms.

The screens were written apart from the rules, from public descriptions of formats (`benchmarks.synthetic`
names them) and from what services send; `benchmarks/secrets.txt` has them. Whoever changes the rules does not
read that file: `--list-missed` shows the mistakes in the tuning half, and the judging half only ever gives
numbers. A frame belongs to a half by the hash of its text. With `--drawn N`, N of the screens become pictures
(several fonts, small, dark, slanted, turned), and the real text recognition reads them.

A secret counts as noticed when anything on its screen is found, for that holds the whole screenshot back; as
named when the kind is right; as covered when nine tenths of its letters and digits are in what was found,
which is what is cut out of searches. Intervals are Wilson's at 95 %, with a frame counted once: its screens
are alike.
"""

import argparse
import io
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from benchmarks import frames
from rules import sensitive
from rules.embedded import LocalModel

HALVES = ("tuning", "judging")
COVERED = 0.9


class Verdict(NamedTuple):
    """What the rules said of a screen. `manner` is its layout, or how it was drawn."""

    screen: frames.Screen
    found: tuple[str, ...]
    covered: bool
    manner: str

    @property
    def named(self) -> bool:
        return not set(self.found).isdisjoint(self.screen.frame.kinds)


def judge(screen: frames.Screen) -> Verdict:
    """The verdict on the lines of a screen as text."""
    findings = sensitive.find(screen.lines)
    spans = [set[int]() for _ in screen.lines]
    for finding in findings:
        spans[finding.line].update(range(finding.start, finding.end))
    inside = sum(len(columns & span) for columns, span in zip(screen.secret, spans, strict=True))
    wanted = sum(map(len, screen.secret))
    found = tuple(sorted({finding.kind for finding in findings}))
    return Verdict(screen, found, inside >= COVERED * wanted, screen.layout)


def judge_drawn(screens: list[frames.Screen], number: int, chance: random.Random) -> list[Verdict]:
    """The verdicts on `number` of the screens as pictures."""
    model = LocalModel(ocr_model="both", language="en")
    verdicts = []
    try:
        for screen in chance.sample(screens, min(number, len(screens))):
            picture = frames.draw(screen, chance)
            page, _ = model.read(io.BytesIO(picture.content))
            found = tuple(
                sorted({finding.kind for finding in sensitive.find([line.text for line in page.lines])})
            )
            verdicts.append(Verdict(screen, found, False, picture.manner))
    finally:
        model.close()
    return verdicts


def interval(share: float, number: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `number`."""
    if not number:
        return 0.0, 1.0
    z = 1.96
    middle = share + z * z / (2 * number)
    reach = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    whole = 1 + z * z / number
    return max(0.0, (middle - reach) / whole), min(1.0, (middle + reach) / whole)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secrets", description=__doc__)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--half", choices=HALVES, help="default: both, one after the other")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="draw and read N screens of a half")
    parser.add_argument("--list-missed", action="store_true", help="of the tuning half only")
    options = parser.parse_args()
    screens = frames.screens(options.seed)
    for half in [options.half] if options.half else HALVES:
        chosen = [screen for screen in screens if screen.frame.half == half]
        if options.drawn:
            verdicts = judge_drawn(chosen, options.drawn, random.Random(options.seed))
        else:
            verdicts = [judge(screen) for screen in chosen]
        _print(half, verdicts, drawn=bool(options.drawn))
        if options.list_missed and half == "tuning":
            _list(verdicts, drawn=bool(options.drawn))


def _print(half: str, verdicts: list[Verdict], *, drawn: bool) -> None:
    secret = [verdict for verdict in verdicts if verdict.screen.frame.kinds]
    harmless = [verdict for verdict in verdicts if not verdict.screen.frame.kinds]
    print(f"\n{half} half: {len(secret)} screens with secrets, {len(harmless)} look-alikes")
    print(f"{'':>18} screens frames  noticed (95 %)           named" + ("" if drawn else "  covered"))
    _rows(secret, lambda verdict: verdict.screen.frame.kinds[0], drawn=drawn)
    _rows(secret, lambda verdict: verdict.screen.frame.group, drawn=drawn)
    _rows(secret, lambda verdict: verdict.manner, drawn=drawn)
    _rows(secret, lambda _: "all secrets", drawn=drawn)
    print(f"{'':>18} screens frames  false alarms (95 %)")
    for group, of in _grouped(harmless, lambda verdict: verdict.screen.frame.group).items():
        print(f"{group:>18} {_share(of, [bool(verdict.found) for verdict in of])}")
    print(f"{'all look-alikes':>18} {_share(harmless, [bool(verdict.found) for verdict in harmless])}")


def _rows(verdicts: list[Verdict], key: Callable[[Verdict], str], *, drawn: bool) -> None:
    for name, of in sorted(_grouped(verdicts, key).items()):
        named = sum(verdict.named for verdict in of) / len(of)
        covered = sum(verdict.covered for verdict in of) / len(of)
        row = f"{name:>18} {_share(of, [bool(verdict.found) for verdict in of])}  {named:6.1%}"
        print(row if drawn else f"{row}  {covered:6.1%}")


def _grouped(verdicts: list[Verdict], key: Callable[[Verdict], str]) -> dict[str, list[Verdict]]:
    groups: defaultdict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[key(verdict)].append(verdict)
    return groups


def _share(verdicts: list[Verdict], true: list[bool]) -> str:
    number = len({verdict.screen.frame for verdict in verdicts})
    share = sum(true) / max(1, len(true))
    low, high = interval(share, number)
    return f"{len(verdicts):7} {number:6}  {sum(true):4} {share:6.1%} ({low:.1%} to {high:.1%})".ljust(46)


def _list(verdicts: Iterable[Verdict], *, drawn: bool) -> None:
    for verdict in verdicts:
        kinds = verdict.screen.frame.kinds
        if kinds and verdict.found and verdict.named and (drawn or verdict.covered):
            continue
        if not kinds and not verdict.found:
            continue
        if not kinds:
            mistake = "FALSE ALARM"
        elif not verdict.found:
            mistake = "MISSED"
        else:
            mistake = "not covered" if verdict.named else "named wrongly"
        right, found = ", ".join(kinds) or frames.HARMLESS, ", ".join(verdict.found) or "nothing"
        print(f"\n{mistake}: {right} in {verdict.screen.frame.language}, {verdict.manner}; found {found}")
        print("\n".join(f"    {line}" for line in verdict.screen.lines))


if __name__ == "__main__":
    main()
