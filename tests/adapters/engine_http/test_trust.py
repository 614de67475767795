"""Which certificates are trusted, and why one was refused."""

import ssl
from pathlib import Path

import pytest
import trustme

from luftpause.adapters.engine_http.trust import default_trust, tls_fault
from luftpause.ports.engines import EngineUnreachableError


def names_of(context: ssl.SSLContext) -> str:
    return str(context.get_ca_certs())


def test_an_authority_in_ssl_cert_file_is_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "authority.pem"
    trustme.CA(organization_name="Ours").cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = default_trust()
    assert "Ours" in names_of(context)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_without_the_variable_the_systems_authorities_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert default_trust().verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(("content", "cause"), [(None, "No such file"), ("no certificate", "no certificate is in it")])
def test_a_file_without_certificates_is_named_instead_of_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, cause: str
) -> None:
    file = tmp_path / "authority.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(EngineUnreachableError, match=f"SSL_CERT_FILE names .*authority.pem.*: {cause}"):
        default_trust()


def test_a_fault_of_tls_itself_is_told_in_words() -> None:
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_PROTOCOL_VERSION] tlsv1 alert protocol version")
    assert "alert protocol version" in tls_fault(error)
    error.reason = "TLSV1_ALERT_PROTOCOL_VERSION"
    assert tls_fault(error) == "tlsv1 alert protocol version"
    error.reason = "WRONG_VERSION_NUMBER"
    assert "does not speak TLS" in tls_fault(error)
