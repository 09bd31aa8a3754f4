"""The command that made a table, as it stands in a file."""

from kdx.report.made_by import MadeBy


def test_a_command_is_read_back_whatever_its_names_are():
    for made_by in (
        MadeBy(("quickstart",), "main"),
        MadeBy(("a b", "tsai2019/table1"), "it's <t> --> %", "both.yaml", "tsai2019", True, True, "full"),
        MadeBy(("--odd",), "t", statistics=True),
        MadeBy(("a",), "t", notes="none"),
    ):
        assert MadeBy.read(str(made_by)) == made_by
    for command in ("", "kdx", "kdx sweep x", "kdx report --nothing", "kdx report 'a", "kdx report --notes long"):
        assert MadeBy.read(command) is None
