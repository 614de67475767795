"""Hostile text made safe to print: one line, no control characters, no terminal escapes. Knows no log format."""


def printable(text: str) -> str:
    r"""Return the text with each unprintable character (control, bidi mark, lone surrogate) as an escape, \\uXXXX."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
