import asyncio

from luftpause.core.model.ids import ANONYMOUS_PRINCIPAL
from luftpause.core.runs.view import RunStatus, RunView
from luftpause.services.runtime.glance import AT_ONCE
from luftpause.services.runtime.orders import RuntimeSettings
from services.runtime.runtime_fakes import hold, in_time, order, runtime

ME = ANONYMOUS_PRINCIPAL


def test_views_are_made_a_few_at_a_time_of_one_moment() -> None:
    async def live() -> None:
        async with runtime(hold, settings=RuntimeSettings(max_running=500)) as world:
            runs = [await world.service.spawn(order(f"{number}")) for number in range(2 * AT_ONCE + 10)]
            glance = world.service.glance(ME)
            made = 0

            def shown(view: RunView) -> tuple[str, RunStatus]:
                nonlocal made
                made += 1
                return view.run, view.status

            looking = asyncio.ensure_future(glance.each(shown))
            await asyncio.sleep(0)
            assert made == AT_ONCE, "whoever else is there gets a turn"
            await world.service.cancel(ME, runs[0])
            assert await looking == [(run, RunStatus.RUNNING) for run in reversed(runs)], "as it was when asked"
            assert [view.run for view in glance.views()] == [*reversed(runs)]
            assert world.service.look(ME, runs[:1])[0].status is RunStatus.CANCELLED

    in_time(live())
