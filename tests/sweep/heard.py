"""Somebody who listens to a sweep."""


class Heard:
    """Keeps what a sweep tells."""

    def __init__(self) -> None:
        self.started_runs = []
        self.steps = []
        self.ended_runs = []

    def decided(self, decisions):
        self.decisions = decisions

    def started(self, run, attempt):
        self.started_runs.append(((run.cell.id, run.seed), attempt))

    def begins(self, run, what):
        self.begun = [*getattr(self, "begun", []), (run.seed, what)]

    def progressed(self, run, step, loss):
        self.steps.append(step)

    def noted(self, run, text):
        self.notes = [*getattr(self, "notes", []), (run.seed, text)]

    def ended(self, run, record):
        self.ended_runs.append(record)

    def evaluating(self, run, count):
        self.evaluating_runs = [*getattr(self, "evaluating_runs", []), (run.seed, count)]

    def evaluated(self, run, missing, problem):
        self.evaluated_runs = [*getattr(self, "evaluated_runs", []), (run.seed, missing, problem)]

    def host_lost(self, problem):
        self.hosts_lost = [*getattr(self, "hosts_lost", []), problem]

    def stopping(self):
        self.told_to_stop = True

    def hung(self, run, seconds):
        self.hung_runs = [*getattr(self, "hung_runs", []), run.seed]
