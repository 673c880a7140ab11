"""Expected failures as exception classes, each with its HTTP status.

Verbs raise these and know nothing of HTTP; `app.py` turns them into the error body
`{"detail": "<sentence>"}`. This module imports nothing of the project, so every other module may import it.
"""

from typing import Any


class SnaploreError(Exception):
    """A failure whose `detail` is a sentence for the client: no secret, no path of the machine, no traceback.

    `retry_after`, in seconds, is sent as the header `Retry-After`.
    """

    status = 500

    def __init__(self, detail: str, *, retry_after: float | None = None):
        super().__init__(detail)
        self.detail = detail
        self.retry_after = retry_after


class BadInput(SnaploreError):
    """The request is invalid; the sentence starts with the field's name."""

    status = 400


class NotAuthenticated(SnaploreError):
    status = 401


class Forbidden(SnaploreError):
    """The token is valid, and its scope does not allow this."""

    status = 403


class NotFound(SnaploreError):
    status = 404


class Conflict(SnaploreError):
    status = 409


class TooLarge(SnaploreError):
    status = 413


class UnsupportedImage(BadInput):
    """The bytes are not a picture that Snaplore stores: another type, damaged, or a decompression bomb."""


class TooManyRequests(SnaploreError):
    status = 429


class Unavailable(SnaploreError):
    """Temporarily unavailable: the client may try again after `retry_after` seconds."""

    status = 503


class StorageFull(SnaploreError):
    status = 507


class Unreadable(SnaploreError):
    """A stored file is missing or fails authentication; everything else still works."""

    status = 500


class DataDamaged(SnaploreError):
    """The database is damaged; queries that touch only intact pages still work."""

    status = 500


class StartRefused(SnaploreError):
    """The service must not start: a setting, a key or the stored data is wrong. Nothing was changed."""


class EncryptionDiffers(StartRefused):
    """The stored data is encrypted and the settings say it is not, or the reverse."""


class DatabaseEmpty(StartRefused):
    """The database of a folder that was in use has no tables: its data is lost, or was never put back."""


class ModelFailure(SnaploreError):
    """A model gave no usable answer. The subclass names the cause, which decides what the queue does next."""

    status = 502
    usage: Any = None  # `findings.Usage` of the calls made before the failure: they are billed all the same


MAX_RETRY_AFTER = 86_400.0  # seconds: a provider cannot pause the queue for longer than a day


class ProviderDown(ModelFailure):
    """The provider has a temporary problem: no connection, a timeout, 429 or 5xx.

    `retry_after` is the provider's own, at most `MAX_RETRY_AFTER`.
    """


class ProviderRefused(ModelFailure):
    """The provider rejects this configuration (401, 403, 404); a retry would change nothing."""


class AnswerUnusable(ModelFailure):
    """The answer about this picture or conversation is unusable: refused, cut off or unreadable."""


class ToolsRefused(AnswerUnusable):
    """The model does not support tool calls; it may still answer a request without tools."""
