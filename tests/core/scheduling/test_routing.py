"""Where turns of unknown models go."""

import pytest

from luftpause.core.model.ids import ModelName
from luftpause.core.model.turns import NO_TRAITS, Traits
from luftpause.core.scheduling.routing import Route, RoutedBecause, Routing, Rule, route

PICTURE = Traits(images=True)
CODE = Traits(code_share=40)
ASKED = ModelName("gpt-4o")


def to(name: str) -> ModelName:
    return ModelName(name)


def test_rules_come_first_in_their_order_then_pictures_then_code_then_the_default() -> None:
    routing = Routing(
        rules=(Rule(to=to("first"), pattern="gpt-.*", prompt_min=100), Rule(to=to("second"), pattern="gpt-4.*")),
        images=to("eyes"),
        code=to("coder"),
        default=to("plain"),
    )
    assert route(routing, ASKED, PICTURE, 100) == Route(model=to("first"), why=RoutedBecause.RULE, rule=1)
    assert route(routing, ASKED, PICTURE, 99) == Route(model=to("second"), why=RoutedBecause.RULE, rule=2)
    both = Traits(images=True, code_share=90)
    assert route(routing, to("x"), both, 1) == Route(model=to("eyes"), why=RoutedBecause.IMAGES)
    assert route(routing, to("x"), CODE, 1) == Route(model=to("coder"), why=RoutedBecause.CODE)
    assert route(routing, to("x"), NO_TRAITS, 1) == Route(model=to("plain"), why=RoutedBecause.DEFAULT)


def test_what_has_no_target_is_no_reason() -> None:
    assert route(Routing(), ASKED, Traits(images=True, code_share=90), 1) is None
    found = route(Routing(code=to("coder")), ASKED, Traits(images=True, code_share=90), 1)
    assert found == Route(model=to("coder"), why=RoutedBecause.CODE)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (Rule(to=to("t")), True),
        (Rule(to=to("t"), pattern="gpt"), False),
        (Rule(to=to("t"), pattern="GPT.*"), False),
        (Rule(to=to("t"), images=True), True),
        (Rule(to=to("t"), images=False), False),
        (Rule(to=to("t"), code_share=40), True),
        (Rule(to=to("t"), code_share=41), False),
        (Rule(to=to("t"), prompt_min=10, prompt_max=10), True),
        (Rule(to=to("t"), prompt_max=9), False),
    ],
)
def test_a_rule_fits_when_all_that_it_says_is_so(rule: Rule, fits: bool) -> None:
    assert rule.fits(ASKED, Traits(images=True, code_share=40), 10) is fits


def test_a_name_that_is_too_long_fits_no_pattern() -> None:
    rule = Rule(to=to("t"), pattern="(a*)*")
    assert rule.fits(to("a" * 200), NO_TRAITS, 1)
    assert not rule.fits(to("a" * 201), NO_TRAITS, 1)


def test_only_rules_about_contents_need_a_look_at_them() -> None:
    assert not Routing(rules=(Rule(to=to("t"), pattern="x", prompt_min=1),), default=to("t")).looks_inside
    assert Routing(rules=(Rule(to=to("t"), images=False),)).looks_inside
    assert Routing(rules=(Rule(to=to("t"), code_share=1),)).looks_inside
    assert Routing(images=to("t")).looks_inside
    assert Routing(code=to("t")).looks_inside
