from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import ANONYMOUS, OPERATOR, Principal
from luftpause.core.model.turns import ServiceClass

NIGHTLY = Principal(name=PrincipalId("nightly"), classes=(ServiceClass.BATCH,))


def test_a_class_that_is_not_allowed_is_refused_in_words_and_the_first_allowed_is_the_usual_one() -> None:
    assert NIGHTLY.usual_class is ServiceClass.BATCH
    assert NIGHTLY.refusal_of(ServiceClass.BATCH) == ""
    assert NIGHTLY.refusal_of(ServiceClass.INTERACTIVE) == (
        "'nightly' may not ask for the class 'interactive', only for 'batch'"
    )
    for either in (ANONYMOUS, OPERATOR):
        assert either.usual_class is ServiceClass.INTERACTIVE
        assert [either.refusal_of(each) for each in ServiceClass] == ["", ""]


def test_only_whoever_operates_this_sees_the_runs_of_others() -> None:
    assert (ANONYMOUS.sees_all, OPERATOR.sees_all, NIGHTLY.sees_all) == (True, True, False)


def test_only_whoever_presents_the_operators_token_decides_for_others() -> None:
    assert (ANONYMOUS.decides_all, OPERATOR.decides_all, NIGHTLY.decides_all) == (False, True, False)
