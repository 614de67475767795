import pytest

from luftpause.services.dataplane.routes import SINGLE_ROUTES, TURN_ROUTES
from luftpause.services.dataplane.ways_out import meant, way_out

BELOW_V1 = [route for route in (*TURN_ROUTES, *SINGLE_ROUTES, "/v1/models") if route.startswith("/v1/")]


def slips(route: str) -> list[str]:
    """Return what becomes of a route at a base URL with too much or too little in it."""
    ending = route.removeprefix("/v1")
    return [
        f"{route}/",
        f"/{route}",
        f"/v1/{ending}",
        f"/v1//{ending}//",
        ending,
        f"/api{route}",
        f"/v1alpha{ending}",
        f"{route}{ending}",
        f"{route}{route}",
        f"/openai{ending}",
        route.title(),
    ]


@pytest.mark.parametrize("route", BELOW_V1)
def test_who_slips_with_a_base_url_is_told_the_route_that_must_be_meant(route: str) -> None:
    for path in {*slips(route)} - {*SINGLE_ROUTES}:
        assert meant(path) == route
        told = way_out(path)
        assert told.startswith(f"did you mean {route!r}?"), path
        assert "a base URL ends in /v1" in told


@pytest.mark.parametrize("ending", ["/models/a/b:1:streamGenerateContent", "/models/m:countTokens", "/models"])
@pytest.mark.parametrize("base", ["/v1beta/", "//v1beta", "/api/v1beta"])
def test_so_is_who_slips_with_one_for_googles_clients(base: str, ending: str) -> None:
    assert meant(base + ending) == f"/v1beta{ending}"
    assert way_out(base + ending).startswith(f"did you mean {meant(base + ending)!r}?")


@pytest.mark.parametrize("path", ["/v1/v1/chat/completions", "/v1/v1/responses", "/v1/v1/embeddings"])
def test_a_version_that_stands_there_twice_is_too_much_in_the_base_url(path: str) -> None:
    assert way_out(path).startswith("its version stands there twice: a base URL ends in /v1")
    assert meant(path) == path.removeprefix("/v1")


@pytest.mark.parametrize(
    "path",
    ["", "*", "/", "/v1", "/v1/batches", "/api/chat", "/v1/responses/resp_1", "/v1/messages/batches", "/models/m"],
)
def test_nothing_is_meant_where_no_route_is_near(path: str) -> None:
    assert meant(path) == path
    assert way_out(path).startswith("the LLM door serves POST /v1/chat/completions")


@pytest.mark.parametrize("path", ["/models/m" * 7000, "/" * 64_000, "/models/m" + ":" * 60_000], ids=["m", "/", ":"])
def test_a_path_of_any_length_is_looked_at_in_no_time(path: str) -> None:
    assert meant(path) == path
