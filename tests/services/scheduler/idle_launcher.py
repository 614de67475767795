"""A launcher that takes orders and carries none out."""

from luftpause.core.model.ids import LauncherId, ModelName
from luftpause.core.model.models import RAM, Device, ModelSpec
from luftpause.core.scheduling.residency.events import LauncherJoined
from luftpause.ports.launcher import ModelOrder
from luftpause.ports.processes import LogSlice


class Seat:
    """A launcher with one model, which does nothing by itself."""

    def inventory(self) -> LauncherJoined:
        catalogue = (ModelSpec(model=ModelName("big"), memory=100),)
        return LauncherJoined(
            launcher=LauncherId("box"), devices=(Device(device=RAM, memory=1000),), catalogue=catalogue
        )

    def ordered(self, order: ModelOrder) -> None:
        """Take an order."""

    async def log(self, model: ModelName, after: int) -> LogSlice:
        return LogSlice(lines=(), next=0)
