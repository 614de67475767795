from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import ANONYMOUS, Principal
from luftpause.ports.asgi import PRINCIPAL_KEY, principal_of


def test_a_request_is_anonymous_unless_a_guard_wrote_whose_it_is() -> None:
    alice = Principal(name=PrincipalId("alice"))
    assert principal_of({"type": "http", PRINCIPAL_KEY: alice}) is alice
    assert principal_of({"type": "http"}) is ANONYMOUS
