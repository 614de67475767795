"""docs/CONNECT.md."""

from luftpause.cli.connecting.clients import CLIENTS
from luftpause.cli.connecting.page import connect_page


def test_every_client_has_a_row_and_a_section() -> None:
    page = connect_page()
    for name, client in CLIENTS.items():
        assert f"| [{client.title}](#{name}) |" in page
        assert f"\n## {name}\n" in page
