import asyncio

from adapters.engine_http.scripted_engine import eventually, run_bounded
from luftpause.adapters.engine_http.connection import Connection
from luftpause.adapters.engine_http.origin import parse_origin
from luftpause.adapters.engine_http.pool import KEPT_MAX, Pool


class Wire(asyncio.Transport):
    """A transport that only knows whether it was aborted."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted


class Forgetting:
    """An owner that cares for what is lost only."""

    def __init__(self, pool: Pool) -> None:
        self.lost = pool.forget

    def has_unread(self, descriptor: int) -> bool:
        raise AssertionError("there is no socket")

    def released(self, connection: Connection, *, reusable: bool) -> None:
        raise AssertionError("there was no exchange")

    def unasked(self, connection: Connection) -> None:
        raise AssertionError("there is no engine")


def opened(pool: Pool) -> tuple[Connection, Wire]:
    origin = parse_origin("http://127.0.0.1:1")
    connection = Connection(Forgetting(pool), origin, loop=asyncio.get_running_loop(), buffer=memoryview(bytearray(1)))
    wire = Wire()
    connection.connection_made(wire)
    return connection, wire


def test_the_connection_given_back_last_goes_out_first() -> None:
    async def main() -> None:
        pool = Pool(idle_s=10.0)
        first, second = opened(pool)[0], opened(pool)[0]
        pool.give_back(first)
        pool.give_back(second)
        assert [pool.take(), pool.take(), pool.take()] == [second, first, None]
        pool.close()

    run_bounded(main())


def test_an_idle_connection_is_closed_in_time_and_a_younger_one_later() -> None:
    async def main() -> None:
        pool = Pool(idle_s=0.02)
        older, older_wire = opened(pool)
        pool.give_back(older)
        await eventually(lambda: asyncio.get_running_loop().time() - older.idle_since > 0.01)
        younger, younger_wire = opened(pool)
        pool.give_back(younger)
        await eventually(lambda: older_wire.aborted)
        await eventually(lambda: younger_wire.aborted)
        assert len(pool) == 0

    run_bounded(main())


def test_a_connection_that_idled_too_long_is_not_given_out_even_if_nobody_reaped_it() -> None:
    async def main() -> None:
        pool = Pool(idle_s=10.0)
        stale, wire = opened(pool)
        pool.give_back(stale)
        stale.idle_since -= 11.0
        assert pool.take() is None
        assert wire.aborted
        pool.close()

    run_bounded(main())


def test_a_lost_connection_is_forgotten() -> None:
    async def main() -> None:
        pool = Pool(idle_s=10.0)
        lost, _ = opened(pool)
        pool.give_back(lost)
        lost.connection_lost(None)
        assert len(pool) == 0
        pool.give_back(lost)
        assert pool.take() is None

    run_bounded(main())


def test_the_number_kept_is_bounded_and_closing_closes_all() -> None:
    async def main() -> None:
        pool = Pool(idle_s=10.0)
        wires = []
        for _ in range(KEPT_MAX + 1):
            connection, wire = opened(pool)
            pool.give_back(connection)
            wires.append(wire)
        assert [wire.aborted for wire in wires] == [False] * KEPT_MAX + [True]
        pool.close()
        assert all(wire.aborted for wire in wires)
        assert len(pool) == 0

    run_bounded(main())
