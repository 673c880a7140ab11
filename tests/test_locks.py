"""The lock files of the dependencies: every requirement at a fitting version, with hashes, without addresses.

The tests parse the files as pip does, but do not run pip: `make lock` shows whether wheels exist for every
platform.
"""

import ast
import itertools
import re
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"requirements.in": "requirements.txt", "requirements-dev.in": "requirements-dev.txt"}

HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")
PLATFORMS = [
    {
        "python_version": version,
        "python_full_version": f"{version}.0",
        "platform_machine": machine,
        "sys_platform": "linux",
    }
    for version, machine in itertools.product(("3.11", "3.12", "3.13"), ("x86_64", "aarch64"))
]


@pytest.mark.parametrize(("needs", "lock"), LOCKS.items())
def test_every_need_is_locked_at_a_version_that_fits(needs, lock):
    locked = locked_versions(lock)
    wanted = [Requirement(line) for line in lines(needs) if not line.startswith("-c ")]
    assert wanted
    for need in wanted:
        versions = locked[canonicalize_name(need.name)]
        assert versions, f"{need.name} is not in {lock}: run `make lock`"
        assert all(need.specifier.contains(version) for version in versions), (
            f"{lock} has {need.name} {versions}, and {need} is wanted"
        )


def test_every_package_that_the_service_imports_is_asked_for():
    asked = {canonicalize_name(Requirement(line).name) for line in lines("requirements.in")}
    sources = [*ROOT.glob("*.py"), *ROOT.glob("migrations/*.py")]
    names = {name.split(".")[0] for path in sources for name in imported(path)}
    owners = packages_distributions()
    missing = {
        name
        for name in names & owners.keys()
        if not asked & {canonicalize_name(owner) for owner in owners[name]}
    }
    assert missing - {path.stem for path in sources} == set(), (
        "what comes along with another package may leave with it"
    )


@pytest.mark.parametrize("lock", LOCKS.values())
def test_every_locked_package_has_hashes_and_nothing_else(lock):
    for line in lines(lock):
        requirement, *options = line.split(" --")
        assert [pin.operator for pin in Requirement(requirement).specifier] == ["=="], line
        assert options, f"{requirement} has no hash"
        assert all(HASH.fullmatch(f"--{option.strip()}") for option in options), line


@pytest.mark.parametrize("lock", LOCKS.values())
def test_a_platform_gets_each_package_once(lock):
    requirements = [Requirement(line.split(" --")[0]) for line in lines(lock)]
    for platform in PLATFORMS:
        names = [
            requirement.name
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate(platform)
        ]
        assert len(names) == len(set(names)), platform


@pytest.mark.parametrize("name", [*LOCKS, *LOCKS.values()])
def test_no_address_and_no_path_of_a_machine_is_named(name):
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert re.findall(r"(?:^|[\s=@\"'])[/~]\S*", text) == []
    assert re.findall(r"--(?:\w*-?index\w*-?url|find-links|trusted-host)", text) == []


def test_both_locks_agree_on_what_they_share():
    runtime, development = (locked_versions(lock) for lock in LOCKS.values())
    shared = runtime.keys() & development.keys()
    assert {name: development[name] for name in shared} == {name: runtime[name] for name in shared}


def locked_versions(lock: str) -> dict[str, set[Version]]:
    """Package -> its versions in `lock`; more than one where platforms differ."""
    versions = defaultdict(set)
    for line in lines(lock):
        requirement = Requirement(line.split(" --")[0])
        versions[canonicalize_name(requirement.name)] |= {
            Version(pin.version) for pin in requirement.specifier
        }
    return versions


def imported(path: Path) -> set[str]:
    """The modules that a source file imports, at its top or anywhere inside."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def lines(name: str) -> list[str]:
    """The logical lines of a requirements file, continued lines joined, comments and blank lines left out."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    return [" ".join(line.split()) for raw in text.splitlines() if (line := raw.partition("#")[0].strip())]
