"""The one way in which starting fails that a person can mend, whatever part it was."""


class StartFailedError(Exception):
    """A part did not start. Its text is one line: what failed and, where there is one, the way out."""
