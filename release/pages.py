"""Makes a site of the documents, with a search: `make site`, or

    release/.venv-site/bin/python -m release.pages dist/site

Every file of it is on the disk: a reader needs no network.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = ROOT / "release" / "site" / "mkdocs.yml"
ELSEWHERE = ("LICENSE", "deploy/", "crontab", "compose.yaml", "Containerfile")  # files that are no pages
_LINK = re.compile(r"\]\(([^()\s]{1,500})\)")


def place(folder: Path) -> None:
    """Write every document into `folder`, in one level, with links that fit."""
    for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        content = document.read_text(encoding="utf-8")
        (folder / _name(document.name)).write_text(_LINK.sub(_moved, content), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures")
    shutil.copy(CONFIGURATION.with_name("iframe-worker.js"), folder)


def _name(document: str) -> str:
    return "index.md" if document == "README.md" else document


def _moved(link: re.Match[str]) -> str:
    """A link as it is from a page of the site."""
    target = link[1]
    if re.match(r"[a-z]+:|#", target):
        return link[0]
    path, mark, anchor = target.removeprefix("../").removeprefix("docs/").partition("#")
    if path.startswith(ELSEWHERE):
        return "]"  # its text stays, in brackets
    return f"]({_name(path)}{mark}{anchor})"


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made, "docs")
        folder.mkdir()
        place(folder)
        shutil.copyfile(CONFIGURATION, Path(made, "mkdocs.yml"))
        command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
        # Its own advertisement of its successor.
        subprocess.run(command, cwd=made, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)


if __name__ == "__main__":
    main()
