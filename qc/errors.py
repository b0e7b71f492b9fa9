"""The one exception that quality control raises for what a user can cause."""


class QcError(ValueError):
    """A run, a table of verdicts or a setting that cannot be used: the message says which, why and what to do."""
