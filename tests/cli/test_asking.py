"""Where the scheduler is asked from the command line."""

from pathlib import Path

import pytest

from luftpause.cli.asking import answer_of, configured_url
from luftpause.cli.failures import CommandFailedError


def test_the_address_is_that_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "luftpause.toml"
    file.write_text('[scheduler]\nhost = "::1"\nhttp_port = 7\n')
    assert configured_url(file) == "http://[::1]:7"
    file.write_text('[scheduler]\nhost = "0.0.0.0"\nhttp_port = 7\n')
    assert configured_url(file) == "http://127.0.0.1:7"
    file.write_text("[scheduler]\nhttp_port = 0\n")
    with pytest.raises(CommandFailedError, match="give the one that `luftpause up` prints"):
        configured_url(file)


@pytest.mark.parametrize("address", ["ftp://x", "http://", "http://[::1", "nonsense"])
def test_what_is_no_address_is_said_so(address: str) -> None:
    with pytest.raises(CommandFailedError, match="is no url"), answer_of(address, "GET", "/models", {}):
        pass
