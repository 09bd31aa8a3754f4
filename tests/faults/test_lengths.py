"""How long the series are."""

import pytest
from lengths import SHARES, count


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    for name in ("KILLS", *SHARES):
        monkeypatch.delenv(name, raising=False)


def test_one_number_asks_for_the_whole_of_the_long_series(monkeypatch):
    monkeypatch.setenv("KILLS", "500")
    asked = {name: count(name, 1) for name in SHARES}
    assert {
        name: asked[name] for name in ("RUN_KILLS", "TREE_KILLS", "GRIDS", "RUNS", "WORKERS", "WORKER_KILLS", "STOPS")
    } == {
        "RUN_KILLS": 450,
        "TREE_KILLS": 50,
        "GRIDS": 1000,
        "RUNS": 300,
        "WORKERS": 8,
        "WORKER_KILLS": 60,
        "STOPS": 20,
    }


def test_one_series_is_asked_for_by_its_own_name(monkeypatch):
    assert count("STOPS", 3) == 3
    monkeypatch.setenv("STOPS", "7")
    assert (count("STOPS", 3), count("RUNS", 40)) == (7, 40)
    monkeypatch.setenv("KILLS", "500")
    assert count("STOPS", 3) == 7
    monkeypatch.setenv("KILLS", "1")
    assert count("RUNS", 40) == 40
