"""The process that claimed a run."""

from kdx.cli.processes import process_in_words, process_of
from kdx.sweep.lease_holder import lease_holder


def test_a_lease_holder_is_a_process_of_a_machine():
    own = lease_holder()
    machine, *_, process, _, _ = own.split("/")
    assert process_of(own) == {"machine": machine, "process": int(process)}
    assert process_in_words(own) == f"process {process} here"
    elsewhere = own.replace(machine, "0123456789abcdef")
    assert process_in_words(elsewhere) == f"process {process} on machine 01234567"


def test_what_another_kdx_wrote_is_no_process():
    for owner in (None, "", "me", "a/b/c"):
        assert process_of(owner) == {"machine": None, "process": None} and process_in_words(owner) is None
    assert process_of("a/b/c/\u0661/e/f")["process"] is None
