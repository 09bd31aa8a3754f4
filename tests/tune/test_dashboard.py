"""Copies of searches for optuna-dashboard, in the database of kdx."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from kdx.cli.running import copy_to_dashboard
from kdx.errors import KdxError
from kdx.store.check import check
from kdx.store.database import database_at, open_database
from kdx.tune.dashboard import add, copy_searches
from tests.tune.searched import plan_of, search

pytestmark = pytest.mark.slow


@pytest.fixture
def searched(tmp_path):
    plan = plan_of(tmp_path, "tpe", "median")
    with open_database(tmp_path / "runs.db", write=True, create=True) as database:
        found = search(database, plan, random.Random(0))
        copy_to_dashboard(found)
    return tmp_path / "runs.db", plan, found


def studies(address: Path | str):
    url, arguments = database_at(address).url()
    storage = optuna.storages.RDBStorage(url, engine_kwargs=dict(arguments))
    found = optuna.get_all_study_summaries(storage)
    return {one.study_name: optuna.load_study(study_name=one.study_name, storage=storage) for one in found}


def test_each_search_is_a_study_with_its_trials(searched):
    path, plan, found = searched
    made = studies(path)
    assert len(made) == 2 and all(name.startswith("tuned: kernel ") for name in made)
    for study, cell in zip(made.values(), plan.cells, strict=True):
        trials = found.trials(cell.search.id)
        assert [trial.params for trial in study.trials] == [one.parameters for one in trials]
        assert study.best_trial.number == found.winner(cell.search.id).number
        assert all(trial.intermediate_values for trial in study.trials)


def test_on_a_server_studies_lie_in_the_database_of_the_sweep(postgresql_server, tmp_path):
    postgresql_server.execute("CREATE DATABASE tuned")
    address = postgresql_server.address("tuned")
    plan = plan_of(tmp_path, "tpe", "median")
    with open_database(address, write=True, create=True) as database:
        found = search(database, plan, random.Random(0))
        copy_to_dashboard(found)
        assert check(database).faults == ()
    made = studies(address)
    for study, cell in zip(made.values(), plan.cells, strict=True):
        assert study.best_trial.number == found.winner(cell.search.id).number
    # Optuna's tables make nothing foreign.
    open_database(address, write=True).close()
    postgresql_server.execute("DROP DATABASE tuned WITH (FORCE)")


def test_a_copy_that_was_broken_off_is_made_good_and_nothing_is_copied_twice(searched):
    path, plan, found = searched
    (cell, _) = plan.cells
    trials = found.trials(cell.search.id)
    url, arguments = database_at(path).url()
    storage = optuna.storages.RDBStorage(url, engine_kwargs=dict(arguments))
    for count in (3, 10, 10):
        add(storage, "again", cell.spec.selection[1], cell.search.space, trials[:count])
        assert [trial.number for trial in studies(path)["again"].trials] == list(range(count))


def test_kdx_takes_a_database_with_the_tables_of_optuna(searched, tmp_path):
    path, _, _ = searched
    with open_database(path, write=True) as database:
        assert check(database).faults == ()
        database.back_up(tmp_path / "copy.db")
    assert len(studies(tmp_path / "copy.db")) == 2


def test_tables_of_another_optuna_are_one_message_and_end_no_search(searched, capsys):
    path, _, found = searched
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v2.6.0.a'")
    with open_database(path, write=True) as database:
        with pytest.raises(KdxError, match="are of another version of Optuna") as caught:
            copy_searches(found)
        assert caught.value.hint is not None and "optuna storage upgrade" in caught.value.hint
        copy_to_dashboard(found)
        assert check(database).faults == ()
    assert "note: optuna-dashboard shows no new trials: " in capsys.readouterr().err
