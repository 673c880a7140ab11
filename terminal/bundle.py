"""Packs the client into one file for machines that only have Python: `make client`.

The file is a zip that Python runs, with the client, the few modules of the ground that it uses, and click.
"""

import importlib.metadata
import shutil
import sys
import tempfile
import zipapp
from pathlib import Path

from settings import ROOT

GROUND = ("errors.py", "settings.py", "text.py")


def pack(file: Path) -> None:
    """Write the client to `file`, executable. Raises `OSError`."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sources = [ROOT / name for name in GROUND] + sorted((ROOT / "terminal").glob("*.py"))
        parts = [(source, source.relative_to(ROOT)) for source in sources]
        # Its licence is among the files of a package.
        for part in importlib.metadata.files("click") or ():
            if part.suffix != ".pyc" and ".." not in part.parts:
                parts.append((Path(str(part.locate())), Path(part)))
        for source, name in parts:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / name)
        zipapp.create_archive(
            folder, file, interpreter="/usr/bin/env python3", main="terminal.commands:run", compressed=True
        )


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
