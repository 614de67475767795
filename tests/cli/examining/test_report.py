import json

from luftpause.cli.examining.findings import Finding, Says
from luftpause.cli.examining.report import as_json, as_text

FOUND: list[Finding] = [
    Says("ports").ok("free"),
    Says("ports").error("taken\x1b[2J", "use another"),
    Says("tools").warning("slow", "wait"),
]


def test_people_get_a_line_for_each_and_what_mends_it() -> None:
    assert as_text(FOUND).plain.splitlines() == [
        "ports  ok       free",
        r"       error    taken\u001b[2J",
        "                -> use another",
        "tools  warning  slow",
        "                -> wait",
        "",
        "1 error, 1 warning",
    ]


def test_without_findings_nothing_is_wrong() -> None:
    assert as_text([]).plain.strip() == "nothing is wrong"


def test_machines_get_one_object() -> None:
    told = json.loads(as_json(FOUND))
    assert told["ok"] is False
    assert told["findings"][0] == {"check": "ports", "grade": "ok", "seen": "free", "mend": None}
    assert json.loads(as_json(FOUND[:1]))["ok"] is True
