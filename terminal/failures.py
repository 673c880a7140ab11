"""How a command of the client fails: one sentence, and an exit code that a script can tell apart."""

import click

from terminal import texts


class Failed(click.ClickException):
    """The service refused, or something cannot be done here. `status` is that of its answer, or 0."""

    exit_code = 1

    def __init__(self, sentence: str, *, status: int = 0, retry_after: float = 0.0):
        super().__init__(texts.safe(sentence))
        self.status = status
        self.retry_after = retry_after  # seconds


class Unreachable(Failed):
    """The service does not answer. To try again later may help."""

    exit_code = 3


class Untrusted(Unreachable):
    """The certificate of the service is not trusted."""
