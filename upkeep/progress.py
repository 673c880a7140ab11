"""How far a long run is: the function that such a run calls, and the one that ignores it.

A run takes a `Progress` as an argument and calls it now and then, so it knows neither terminals nor logs.
"""

from collections.abc import Callable

# Takes the name of the stage, how much of it is done, and out of how much: `progress("files", 3, 10)`.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Report nothing: for a run that nobody watches."""
