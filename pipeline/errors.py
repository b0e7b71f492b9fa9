"""The one exception that the command line turns into a single line and exit code 2."""


class UserError(Exception):
    """Something the caller gave or the machine lacks: the message says what, with which value, and what to do."""


class DamagedEpisode(UserError):
    """An episode folder that does not read back as what was committed."""


class DiskFull(UserError):
    """There is no space left where something must be written."""
