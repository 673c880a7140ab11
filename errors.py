"""Typed failures, each with the HTTP status it becomes.

Verbs raise these and know nothing of HTTP; `app.py` turns them into the one error body `{"detail":
"<sentence>"}`. This file imports nothing of the project, so that every other file may use it.
"""


class SnaploreError(Exception):
    """A failure with a sentence that a person may read: it holds no secret, no path of the machine, no trace."""

    status = 500

    def __init__(self, detail: str, *, retry_after: float | None = None):
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after  # seconds, sent as `Retry-After` where it is given


class BadInput(SnaploreError):
    """The request cannot be taken as it is; the sentence starts with the field's name."""

    status = 400


class NotAuthenticated(SnaploreError):
    status = 401


class NotFound(SnaploreError):
    status = 404


class Conflict(SnaploreError):
    status = 409


class TooLarge(SnaploreError):
    status = 413


class UnsupportedImage(BadInput):
    """The bytes are not a picture that Snaplore stores: wrong type, damaged, or a decompression bomb."""


class Unavailable(SnaploreError):
    """Busy for now: the caller may come again after `retry_after` seconds."""

    status = 503


class StorageFull(SnaploreError):
    status = 507


class Unreadable(SnaploreError):
    """A stored file is missing or fails its authentication: the one thing is lost, the rest works."""

    status = 500


class DataDamaged(SnaploreError):
    """The database is damaged: what stands on whole pages still works."""

    status = 500


class StartRefused(SnaploreError):
    """The service must not start: a setting, a key or the stored data is not what it has to be. Nothing was
    changed.
    """


class EncryptionDiffers(StartRefused):
    """The stored data is encrypted where the settings say it is not, or the other way round."""


class ModelFailure(SnaploreError):
    """A model gave no usable answer. The three subclasses say whose fault it is, and so what the queue does
    next.
    """

    status = 502
    usage = (
        None  # `findings.Usage` of the calls that were made before it failed: they are billed all the same
    )


MAX_RETRY_AFTER = 86_400.0  # seconds: a server cannot put the queue to sleep for longer than a day


class ProviderDown(ModelFailure):
    """The provider's fault, likely to pass: no connection, a time-out, 429 or 5xx.

    `retry_after` as the provider said, at most `MAX_RETRY_AFTER`.
    """


class ProviderRefused(ModelFailure):
    """The provider says no to this configuration (401, 403, 404): asking again costs and changes nothing."""


class AnswerUnusable(ModelFailure):
    """This picture's or conversation's fault: content refused, cut off, or unreadable after repair."""


class ToolsRefused(AnswerUnusable):
    """The model cannot call tools; without any it can be asked."""
