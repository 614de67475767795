import hmac

import pytest

from luftpause.adapters.door_guard.keyring import Key, Keyring, presented_by
from luftpause.core.model.ids import PrincipalId
from luftpause.core.model.principals import Principal

ALICE, BOB = Principal(name=PrincipalId("alice")), Principal(name=PrincipalId("bob"))
RING = Keyring((Key(token="for-alice", principal=ALICE), Key(token="for-bob", principal=BOB)))


@pytest.mark.parametrize(
    ("presented", "found"),
    [
        ([], None),
        ([b""], None),
        ([b"for-alice"], ALICE),
        ([b"for-bob"], BOB),
        ([b"for-carol", b"for-bob"], BOB),
        ([b"for-bob", b"for-alice"], BOB),
        ([b"for-alic"], None),
        ([b"for-alicf"], None),
        ([b"\xff"], None),
    ],
)
def test_a_principal_is_found_by_its_token(presented: list[bytes], found: Principal | None) -> None:
    assert RING.find(presented) is found


@pytest.mark.parametrize("presented", [b"for-alice", b"for-bob", b"for-nobody"])
def test_every_token_is_compared_whatever_was_found(presented: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def compare(given: bytes, token: bytes) -> bool:
        compared.append(token)
        return hmac_compare(given, token)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", compare)
    RING.find([presented])
    assert compared == [b"for-alice", b"for-bob"]


def test_only_a_ring_with_keys_asks_for_one() -> None:
    assert RING
    assert not Keyring()


def test_a_key_does_not_show_its_token() -> None:
    assert "for-alice" not in repr(Key(token="for-alice", principal=ALICE))


@pytest.mark.parametrize(
    ("headers", "query", "presented"),
    [
        ({}, b"", []),
        ({b"authorization": b"Bearer a", b"x-api-key": b"b", b"x-goog-api-key": b"c"}, b"", [b"a", b"b", b"c"]),
        ({b"authorization": b"bearer  a"}, b"", [b"a"]),
        ({b"authorization": b"Basic a"}, b"", []),
        ({b"authorization": b"a"}, b"", []),
        ({}, b"alt=sse&key=a%2Bb", [b"a+b"]),
        ({b"x-api-key": b"b"}, b"key=a&key=c", [b"b", b"a"]),
        ({}, b"monkey=a&keys=b&key", [b""]),
    ],
)
def test_tokens_are_presented_in_four_places(headers: dict[bytes, bytes], query: bytes, presented: list[bytes]) -> None:
    assert presented_by(headers, query) == presented


def test_what_is_left_open_is_open_and_nothing_else() -> None:
    ring = RING.leaving_open(["/", "/page"])
    assert [ring.is_open(path) for path in ("/", "/page", "/health", "/pages", "/status")] == [True] * 3 + [False] * 2
    assert ring.find([b"for-bob"]) is BOB
    assert not RING.is_open("/")
