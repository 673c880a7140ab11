"""Progress of a long run: the type of the function that the run calls, and one that ignores the calls.

A run takes a `Progress` as an argument and calls it now and then, so it needs to know no terminal and no log.
"""

from collections.abc import Callable

# Called with the name of the stage, the amount done and the total: `progress("files", 3, 10)`.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Ignore the progress of a run that nobody watches."""
