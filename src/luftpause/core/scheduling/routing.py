"""Where a turn goes that asks for a model nobody knows by name: rules, then heuristics, then the default model.

Pure. Names that somebody knows never come here, and a rule never replaces another silently: the first that fits counts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from luftpause.core.model.ids import ModelName
from luftpause.core.model.refusals import Refusal
from luftpause.core.model.turns import Traits, TurnOffer
from luftpause.core.scheduling.residency.state import Residency
from luftpause.core.scheduling.services import offered, service_for
from luftpause.core.scheduling.state import Service

_NONE: Final = ModelName("")
NAME_CHARS_MAX: Final = 200
"""A longer name fits no pattern."""
CODE_SHARE_MIN: Final = 30
"""In a hundred bytes: from here on the heuristics take a request for one about code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. What is None does not matter.

    Attributes:
        to: the model that the turn goes to.
        pattern: a regular expression that the asked name matches whole; empty: any.
        images: whether there is a picture in it.
        code_share: at least so many in a hundred bytes are fenced code.
        prompt_min: its shortest length, bytes.
        prompt_max: its longest length, bytes.
    """

    to: ModelName
    pattern: str = ""
    images: bool | None = None
    code_share: int = 0
    prompt_min: int = 0
    prompt_max: int | None = None

    def fits(self, asked: ModelName, traits: Traits, prompt_bytes: int) -> bool:
        """Whether a turn is one of those that it is about."""
        return (
            (not self.pattern or (len(asked) <= NAME_CHARS_MAX and re.fullmatch(self.pattern, asked) is not None))
            and self.images in (None, traits.images)
            and traits.code_share >= self.code_share
            and prompt_bytes >= self.prompt_min
            and (self.prompt_max is None or prompt_bytes <= self.prompt_max)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """What is configured. A target that is empty is none."""

    rules: tuple[Rule, ...] = ()
    images: ModelName = _NONE
    code: ModelName = _NONE
    default: ModelName = _NONE

    @property
    def looks_inside(self) -> bool:
        """Whether what is in a request matters to it."""
        return bool(self.images or self.code) or any(rule.images is not None or rule.code_share for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Services:
    """What replicas are declared to offer, and what launchers could load."""

    serving: Mapping[Service, object]
    residency: Residency

    def knows(self, service: Service) -> bool:
        """Whether a turn for it has somewhere to go, now or once it is loaded."""
        return service in self.serving or service in offered((), self.residency)


class RoutedBecause(Enum):
    """Why a turn of an unknown model went where it did."""

    RULE = "a rule fits"
    IMAGES = "there is a picture in it"
    CODE = "much of it is code"
    DEFAULT = "nobody knows the model that it asks for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a turn goes, and why. `rule`: the rule's number, from 1; 0 where it was none."""

    model: ModelName
    why: RoutedBecause
    rule: int = 0


def route(routing: Routing, asked: ModelName, traits: Traits, prompt_bytes: int) -> Route | None:
    """Return where a turn goes that asks for a model which nobody knows; None: nowhere."""
    for number, rule in enumerate(routing.rules, 1):
        if rule.fits(asked, traits, prompt_bytes):
            return Route(model=rule.to, why=RoutedBecause.RULE, rule=number)
    if routing.images and traits.images:
        return Route(model=routing.images, why=RoutedBecause.IMAGES)
    if routing.code and traits.code_share >= CODE_SHARE_MIN:
        return Route(model=routing.code, why=RoutedBecause.CODE)
    if routing.default:
        return Route(model=routing.default, why=RoutedBecause.DEFAULT)
    return None


def routed_service(routing: Routing, offer: TurnOffer, services: Services) -> tuple[Service | Refusal, Route | None]:
    """Return what a turn asks for, and how it came to that where it asked for something that nobody knows."""
    meant = service_for(services.serving, offer.kind, offer.model, services.residency)
    if not isinstance(meant, Refusal) and services.knows(meant):
        return meant, None
    found = route(routing, offer.model, offer.traits, offer.prompt_bytes)
    if found is None:
        return meant, None
    return service_for(services.serving, offer.kind, found.model, services.residency), found
