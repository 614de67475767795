"""Made-up vectors."""

import base64
import math
import struct
from typing import Any

import msgspec
import pytest

from luftpause.testkit.fake_engine.embeddings import DIMENSIONS, Embeddings, embedding


def asked(**more: object) -> Embeddings:
    return msgspec.convert({"model": "m", "input": ["one", "two"], **more}, Embeddings)


def vector(request: Embeddings, index: int, seed: int = 0) -> list[float]:
    entry: dict[str, Any] = embedding(request, index, seed)
    assert (entry["object"], entry["index"]) == ("embedding", index)
    return [float(number) for number in entry["embedding"]]


def test_a_vector_depends_on_text_and_seed_alone_and_has_length_one() -> None:
    request = asked()
    assert vector(request, 0) == vector(asked(input="one"), 0)
    assert vector(request, 0) != vector(request, 1)
    assert vector(request, 0) != vector(request, 0, seed=1)
    assert math.hypot(*vector(request, 0)) == pytest.approx(1.0)


@pytest.mark.parametrize("dimensions", [1, 31, 33, 4096])
def test_it_has_as_many_dimensions_as_were_asked_for(dimensions: int) -> None:
    assert len(vector(asked(), 0)) == DIMENSIONS
    assert len(vector(asked(dimensions=dimensions), 0)) == dimensions


def test_base64_holds_the_same_numbers_as_little_endian_floats() -> None:
    packed: Any = embedding(asked(encoding_format="base64"), 0, 0)["embedding"]
    assert list(struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(packed))) == pytest.approx(vector(asked(), 0))


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"dimensions": 4097}, {"encoding_format": "int8"}, {"input": 3}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        asked(**wrong)
