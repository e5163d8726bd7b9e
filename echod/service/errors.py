"""What can go wrong between echod and the platform's supervisor."""

from __future__ import annotations

from echod.errors import EchodError


class ServiceError(EchodError):
    """The supervisor did not do what was asked; the sentence says what to do."""


class ForeignFileError(ServiceError):
    """A file in our place was not written by echod."""
