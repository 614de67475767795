"""Who presented a credential, and what that allows."""

from dataclasses import dataclass
from typing import Final

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL, OPERATOR_PRINCIPAL, PrincipalId
from luftpause.core.model.turns import ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """One owner of runs.

    Attributes:
        classes: those that it may ask for, at least one; the first is taken where a request names none.
        sees_all: whether it may look at the runs of others: whoever operates this may.
        decides_all: whether a person behind it may allow and deny the tool calls of others.
    """

    name: PrincipalId
    classes: tuple[ServiceClass, ...] = (ServiceClass.INTERACTIVE, ServiceClass.BATCH)
    sees_all: bool = False
    decides_all: bool = False

    @property
    def usual_class(self) -> ServiceClass:
        """The class of a request that names none."""
        return self.classes[0]

    def refusal_of(self, service_class: ServiceClass) -> str:
        """Return why it may not ask for a class, "" if it may."""
        if service_class in self.classes:
            return ""
        allowed = " or ".join(repr(each.value) for each in self.classes)
        return f"{self.name!r} may not ask for the class {service_class.value!r}, only for {allowed}"


ANONYMOUS: Final = Principal(name=ANONYMOUS_PRINCIPAL, sees_all=True)
"""Whoever comes, where no token is asked for."""
OPERATOR: Final = Principal(name=OPERATOR_PRINCIPAL, sees_all=True, decides_all=True)
"""Who presents LUFTPAUSE_TOKEN."""
