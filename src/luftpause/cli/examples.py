"""Examples below a command's help. A test takes each of them through the command's own parser."""


def examples(*lines: tuple[str, str]) -> str:
    """Return the epilog of a command: each line is what is typed, and what it is for in few words."""
    wide = max(len(typed) for typed, _ in lines)
    shown = (f"  {typed:{wide}}  {said}".rstrip() for typed, said in lines)
    return "\b\nExamples:\n" + "\n".join(shown)
