"""Certificates that the stories' engines show, made anew in each run."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


class Authority:
    """Signs for engines. `env` makes a program trust it."""

    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        file = directory / "authority.pem"
        self._authority.cert_pem.write_to_path(str(file))
        self.env = {"SSL_CERT_FILE": str(file)}

    def serving(self, name: str = "localhost", *, expired: bool = False) -> ssl.SSLContext:
        """Return what a server of this name shows."""
        ended = datetime.now(UTC) - timedelta(days=1)
        begun = ended - timedelta(days=1)
        issued = (
            self._authority.issue_cert(name, not_before=begun, not_after=ended)
            if expired
            else self._authority.issue_cert(name)
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        issued.configure_cert(context)
        return context
