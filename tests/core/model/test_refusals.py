from luftpause.core.model.refusals import MODELS_NAMED_MAX, models_named, no_such_model


def test_models_are_named_in_order_and_not_all_of_many() -> None:
    assert models_named({"b", "a"}) == "'a', 'b'"
    assert models_named([]) == ""
    many = models_named([f"m{at:02}" for at in range(MODELS_NAMED_MAX + 1)])
    assert many.endswith("'m09'…")
    assert "m10" not in many


def test_who_asks_for_an_unknown_model_learns_what_there_is_and_what_to_do() -> None:
    way_out = "it under [[replicas]] or [[launcher.models]]"
    asked = "no Generative replica serves model 'x': "
    assert (
        no_such_model("Generative replica", "x", ["m"])
        == f"{asked}they serve 'm'; ask for one of these, or declare {way_out}"
    )
    assert no_such_model("Generative replica", "x", []) == f"{asked}none is declared; declare {way_out}"
