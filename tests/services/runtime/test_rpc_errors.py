"""Refusals in the shape of JSON-RPC errors."""

import json

from luftpause.services.runtime.rpc_errors import refusal


def test_a_refusal_has_a_status_and_says_why() -> None:
    answer = refusal(404, "there is no <b>run</b>")
    assert (answer.status_code, answer.media_type) == (404, "application/json")
    assert json.loads(bytes(answer.body)) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "there is no <b>run</b>"},
    }
