"""Which certificates an https endpoint may show, and in words why one was refused."""

import os
import ssl
from typing import Final

from luftpause.ports.engines import EngineUnreachableError

CERT_FILE: Final = "SSL_CERT_FILE"
"""OpenSSL's own variable, which other programs heed as well: the authorities to trust instead of the system's."""

_UNKNOWN_AUTHORITY: Final = frozenset((2, 18, 19, 20, 21))
"""OpenSSL's codes for a chain that ends in nobody we trust."""

_NO_TLS: Final = frozenset(("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"))


def default_trust() -> ssl.SSLContext:
    """Return what trusts the system's authorities, or those that SSL_CERT_FILE names.

    Raises:
        EngineUnreachableError: SSL_CERT_FILE names no file of certificates. OpenSSL itself would say nothing and trust
            nobody.
    """
    context = ssl.create_default_context()
    file = os.environ.get(CERT_FILE)
    if file:
        try:
            context.load_verify_locations(file)
        except OSError as error:  # ssl.SSLError is one
            cause = "no certificate is in it" if isinstance(error, ssl.SSLError) else error.strerror or str(error)
            raise EngineUnreachableError(f"{CERT_FILE} names {file!r}: {cause}") from error
    return context


def tls_fault(error: ssl.SSLError) -> str:
    """Return why no TLS came about, in words, with the way out where there is one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        fault = f"its certificate is refused: {error.verify_message.rstrip('.')}"
        if error.verify_code in _UNKNOWN_AUTHORITY:
            fault += f"; to trust an authority of your own, name the file of its certificate in {CERT_FILE}"
        return fault
    reason: str | None = getattr(error, "reason", None)  # those that OpenSSL did not raise have none
    if reason in _NO_TLS:
        return "it does not speak TLS; if it speaks plain HTTP, its url must begin with http://"
    return reason.lower().replace("_", " ") if reason else str(error)
