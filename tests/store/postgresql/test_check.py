"""What is wrong below the rows of tables."""

from kdx.store.check import check
from kdx.store.recording import register


def test_a_sound_database_has_no_faults(database, plan_of):
    register(database, plan_of(), {"tables": []})
    assert check(database).faults == ()


def test_lost_rows_a_lost_trigger_and_a_lost_check_are_found(made, address: str, database, plan_of):
    register(database, plan_of(2, 2), {"tables": []})
    made.execute(address, "DROP TRIGGER run_final_state ON run", "DELETE FROM cell", "DELETE FROM plan")
    with database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE attempt DROP CONSTRAINT attempt_changes")
    trigger, checks, *references = check(database).faults
    assert checks == "column checks are missing: attempt_changes"
    assert trigger == "the trigger run_final_state, which keeps final states final, is missing"
    assert sorted(references) == sorted(
        [
            "4 rows of run name a row of cell that is not there",
            "2 rows of plan_cell name a row of plan that is not there",
            "2 rows of plan_cell name a row of cell that is not there",
            "2 rows of sweep_cell name a row of cell that is not there",
            "4 rows of sweep_run name a row of cell that is not there",
        ]
    )
