"""Tables on a terminal."""

import pytest

from luftpause.cli.tables import print_table


def test_a_table_has_its_title_and_all_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Rivers", (("name", "km"), [("Drava", "749"), ("Tisza", "966")]))
    out = capsys.readouterr().out
    assert out.startswith("Rivers")
    for cell in ("name", "km", "Drava", "749", "Tisza", "966"):
        assert cell in out
    print_table("", (("name",), [("Po",)]))
    assert "Po" in capsys.readouterr().out
