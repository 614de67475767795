"""What a single value can get wrong however well its type fits: urls, paths, command lines, names of variables."""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from luftpause.config.problems import KeyPath, dotted, shown
from luftpause.config.shape import Finding

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def url_faults(path: KeyPath, url: str) -> Iterator[Finding]:
    """Yield what is wrong with a url."""
    fault = _url_fault(url)
    if fault:
        yield path, fault


def engine_url_faults(path: KeyPath, url: str) -> Iterator[Finding]:
    """Yield what is wrong with the base URL of an engine."""
    fault = _url_fault(url)
    if fault:
        yield path, fault
    elif urlsplit(url).path.rstrip("/").endswith("/v1"):
        yield path, "must not end in /v1; luftpause puts that before each route itself"


def _url_fault(url: str) -> str:
    # The url is not repeated where it may hold a password.
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is no url: {error}"
    if "@" in parts.netloc:
        return "must not hold a user or password; name a variable in api_key_env or token_env instead"
    if parts.scheme not in ("http", "https"):
        return f"expected a url that begins with http:// or https://, got {shown(url)}"
    if not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        return f"expected a url such as 'http://127.0.0.1:30000', got {shown(url)}"
    if parts.query or parts.fragment:
        return "must end with its path; no '?' and no '#'"
    return ""


def health_faults(path: KeyPath, health: str) -> Iterator[Finding]:
    """Yield what is wrong with a health path."""
    if not health.startswith("/") or not health.isprintable() or " " in health:
        yield path, f"expected a path such as '/health', got {shown(health)}"


def variable_faults(path: KeyPath, name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of a variable that holds a secret."""
    if name and not _VARIABLE.fullmatch(name):
        # Whoever put the secret itself here must not find it in a log.
        yield path, "must be the name of an environment variable that holds the secret, never the secret itself"


def argv_faults(path: KeyPath, argv: list[str], *, may_be_empty: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a command line."""
    if argv and not argv[0] and not may_be_empty:
        yield (*path, 0), "expected a program, got an empty text"
    for at, argument in enumerate(argv):
        if "\0" in argument:
            yield (*path, at), "must not contain a NUL character"


def environment_faults(path: KeyPath, env: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is wrong with variables for a process."""
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            yield (*path, name), "is no name for an environment variable"
        elif "\0" in value:
            yield (*path, name), "must not contain a NUL character"


def repeats(named: Iterable[tuple[KeyPath, str]]) -> Iterator[Finding]:
    """Yield each key whose name is taken by an earlier one."""
    first: dict[str, KeyPath] = {}
    for path, name in named:
        if name in first:
            yield path, f"the name {shown(name)} is taken by {dotted(first[name])}"
        first.setdefault(name, path)
