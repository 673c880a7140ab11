"""The command `snaplore` of an installed wheel: runs the same program as a checkout's `./snaplore`.

The service's modules have short names, like `models`, and import each other by them. So the wheel has them in
a folder of its own (`snaplore/_app`), and only this process finds them there, before all others.
"""

import runpy
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "snaplore"


def main() -> None:
    sys.path.insert(0, str(PROGRAM.parent))
    runpy.run_path(str(PROGRAM), run_name="__main__")
