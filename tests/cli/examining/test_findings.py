from luftpause.cli.examining.findings import Finding, Grade, Says


def test_each_grade_is_said_in_the_name_of_its_look() -> None:
    says = Says("ports")
    assert says.ok("a") == Finding(check="ports", grade=Grade.OK, seen="a")
    assert says.note("b", "c") == Finding(check="ports", grade=Grade.NOTE, seen="b", mend="c")
    assert says.warning("d", "e") == Finding(check="ports", grade=Grade.WARNING, seen="d", mend="e")
    assert says.error("f", "g") == Finding(check="ports", grade=Grade.ERROR, seen="f", mend="g")
