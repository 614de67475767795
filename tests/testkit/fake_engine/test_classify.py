"""Made-up classification."""

import math

from luftpause.testkit.fake_engine.classify import classification

LABELS = ("urgent", "lookup", "other")


def test_probabilities_sum_to_one_and_the_label_is_the_likeliest() -> None:
    entry = classification(3, "a text", LABELS, 0)
    probabilities = entry["probs"]
    assert isinstance(probabilities, list)
    assert math.isclose(sum(probabilities), 1.0)
    assert entry["label"] == LABELS[probabilities.index(max(probabilities))]
    assert (entry["index"], entry["num_classes"]) == (3, 3)


def test_a_text_that_names_a_label_gets_it() -> None:
    assert classification(0, "This is URGENT, really", LABELS, 0)["label"] == "urgent"


def test_the_same_text_and_seed_give_the_same_answer() -> None:
    assert classification(0, "t", LABELS, 1) == classification(0, "t", LABELS, 1) != classification(0, "t", LABELS, 2)
