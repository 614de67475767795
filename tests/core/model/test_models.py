"""What a catalogue entry says about itself."""

from luftpause.core.model.ids import ModelName
from luftpause.core.model.models import ModelGroup, ModelSpec


def test_a_model_stays_for_others_by_its_own_word_or_by_its_groups() -> None:
    name = ModelName("a")
    assert not ModelSpec(model=name).stays_for_others
    assert not ModelSpec(model=name, group=ModelGroup(name="g", swap=True)).stays_for_others
    assert ModelSpec(model=name, persistent=True).stays_for_others
    assert ModelSpec(model=name, group=ModelGroup(name="g", persistent=True)).stays_for_others
