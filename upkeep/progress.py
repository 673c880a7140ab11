"""Progress of a long run: the type of the function that the run calls, one that ignores the calls, and one
that draws bars.

A run takes a `Progress` as an argument and calls it now and then, so it needs to know no terminal and no log.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

import click

# Called with the name of the stage, the amount done and the total: `progress("files", 3, 10)`.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Ignore the progress of a run that nobody watches."""


@contextlib.contextmanager
def bars() -> Iterator[Progress]:
    """Draw a bar for each stage on a terminal, and nothing elsewhere: cron would mail it."""
    if not sys.stdout.isatty():
        yield silent
        return
    with contextlib.ExitStack() as shown:
        bar = None

        def report(stage: str, done: int, total: int) -> None:
            nonlocal bar
            if bar is None or bar.label != stage:
                shown.close()
                bar = shown.enter_context(click.progressbar(length=total, label=stage))
            bar.update(done - bar.pos)
            if done >= total:  # end the bar's line, so that the next output has a line of its own
                shown.close()
                bar = None

        yield report
