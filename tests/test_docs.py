"""Documents are true: generated parts are current, and links, `make` targets, commands and options exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from commands import table
from docs import generate
from settings import ROOT
from terminal import commands

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()
COMMANDS = click.Group(commands=[*table.COMMANDS, *commands.COMMANDS])

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^()\s]+)\)")
_MAKE = re.compile(r"(?:^ *|`|&& |sudo )make (?:-C \S+ )?([a-z][a-z-]*)", re.MULTILINE)
_COMMAND = re.compile(r"(?:(?<!\S)\./snaplore|`\./snaplore|/deploy/snaplore|flask --app app) +([^`|#;&>]+)")


@pytest.mark.parametrize(
    "path", [generate.API, generate.CONFIGURATION, generate.ARCHITECTURE], ids=lambda path: path.name
)
def test_generated_documents_are_current(path: Path, generated: dict[Path, str]) -> None:
    assert path.read_text() == generated[path], f"{path.name} is stale: run `make docs`"


@pytest.fixture(scope="module")
def generated() -> dict[Path, str]:
    return generate.documents()


def test_storeys_are_listed_from_the_top_between_the_markers() -> None:
    text = "Before\n<!-- storeys -->\nold\n<!-- /storeys -->\nAfter\n"
    table = (
        "| storey | what is there | rooms, from below |\n| --- | --- | --- |\n"
        "| 2 | programs | `jobs` · `app` |\n| 1 | ground | `clock`, `text` |"
    )

    filled = generate.with_storeys(text, (("ground", ("clock text",)), ("programs", ("jobs", "app"))))

    assert filled == f"Before\n<!-- storeys -->\n{table}\n<!-- /storeys -->\nAfter\n"
    for damaged in ("", "<!-- storeys -->\n", text + text):
        with pytest.raises(ValueError, match="markers"):
            generate.with_storeys(damaged, (("programs", ("app",)),))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    assert list(broken_links(path, path.read_text())) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(path: Path) -> None:
    assert list(unknown_targets(path.read_text())) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_their_options_exist(path: Path) -> None:
    assert list(unknown_commands(path.read_text())) == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_modules_and_folders_exist(name: str) -> None:
    prose = _FENCE.sub("", (ROOT / name).read_text())
    missing = [
        path for path in re.findall(r"`([a-z0-9_./]+(?:\.py|/))`", prose) if not (ROOT / path).exists()
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](docs/api.md) [b](https://example.org/nothing.md)", []),
        ("[a](docs/api.md#the-api-of-snaplore-010) [b](#there)\n# There", []),
        ("[a](docs/nothing.md) ![b](docs/nothing.png)", ["docs/nothing.md", "docs/nothing.png"]),
        (
            "[![a picture](docs/nothing.png)](docs/api.md#nothing)",
            ["docs/api.md#nothing", "docs/nothing.png"],
        ),
        ("[a](#second-1) [b](#second-2)\n# Second\n## Second", ["#second-2"]),
        ("`[a](nothing.md)`\n```\n[b](nothing.md)\n# Title\n```\n[c](#title)", ["#title"]),
    ],
)
def test_a_broken_link_is_found(text: str, broken: list[str]) -> None:
    assert list(broken_links(ROOT / "README.md", text)) == broken


def test_an_unknown_target_command_or_option_is_found() -> None:
    text = (
        "Run `make nothing`, or make it.\n```\nsudo make -C /opt/x never\napt install make x\nmake test\n```"
    )
    assert list(unknown_targets(text)) == ["never", "nothing"]
    text = "`./snaplore jobs reason|decay`, `./snaplore backup FILE --force` and `./snaplore --version`"
    assert list(unknown_commands(text)) == []
    text = (
        "`./snaplore jobs nothing`\n"
        "```sh\nsudo /opt/snaplore/deploy/snaplore check --nothing    # --harmless\n```"
    )
    assert list(unknown_commands(text)) == ["check --nothing", "jobs nothing"]


def broken_links(path: Path, text: str) -> Iterator[str]:
    """Each link to a file or an anchor that does not exist, in `text` as the document at `path`."""
    prose = _CODE.sub("", _FENCE.sub("", text))
    for link in [*_LINK.findall(prose), *re.findall(r"!\[[^\]]*\]\(([^()\s]+)\)\]", prose)]:
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists() or (anchor and anchor not in anchors(target.read_text() if name else text)):
            yield link


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings of `text`."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} +(.+)$", _FENCE.sub("", text), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found[anchor] = found.get(anchor, -1) + 1
    return {
        f"{anchor}-{number}" if number else anchor
        for anchor, most in found.items()
        for number in range(most + 1)
    }


def unknown_targets(text: str) -> Iterator[str]:
    """Each target that a code span or block gives to `make` and that the Makefile does not have."""
    targets = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
    for code in _code(text):
        yield from (target for target in _MAKE.findall(code) if target not in targets)


def unknown_commands(text: str) -> Iterator[str]:
    """Each command line of Snaplore in a code span or block whose command or long option does not exist."""
    for code in _code(text):
        for line in _COMMAND.findall(code):
            words = line.partition("\n")[0].split()
            command: click.Command = COMMANDS
            names: list[str] = []
            while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
                names.append(words.pop(0))
                if names[-1] not in command.commands:
                    yield " ".join(names)
                    break
                command = command.commands[names[-1]]
            options = {option for parameter in command.params for option in parameter.opts} | {
                "--help",
                "--version",
            }
            yield from (
                " ".join([*names, word]) for word in words if word.startswith("--") and word not in options
            )


def _code(text: str) -> Iterator[str]:
    blocks = [match.group() for match in _FENCE.finditer(text)]
    yield from blocks
    yield from _CODE.findall(_FENCE.sub("", text))
