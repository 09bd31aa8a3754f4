"""TensorBoard: one folder of event files for each run, in `runs.tensorboard` beside `runs.db`."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from kdx.mirrors.interfaces import Known, Mirror, MirroredRun, Point, plain
from kdx.store.records import RunState


class TensorBoard(Mirror):
    """Writes event files; the folder is read with `tensorboard --logdir`."""

    def __init__(self, beside: Path) -> None:
        self._folder = beside.with_name(f"{beside.name}.tensorboard")
        self.place = str(self._folder)
        self._writers: dict[int, EventFileWriter] = {}

    def begin(self, run: MirroredRun) -> Known:
        folder = self._folder / plain(run.sweep) / f"{plain(run.name)} {run.key}"
        known: dict[str, int] = {}
        for event in _events(folder):
            for value in event.summary.value:
                known[value.tag] = max(event.step, known.get(value.tag, 0))
        self._writers[run.id] = EventFileWriter(str(folder))
        if not known:
            text = "    " + json.dumps(run.settings, indent=2, default=str).replace("\n", "\n    ")  # a block of code
            metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
            tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()])
            value = Summary.Value(tag="settings", tensor=tensor, metadata=metadata)
            self._writers[run.id].add_event(Event(step=0, summary=Summary(value=[value])))
        return lambda name: known.get(name, -1)

    def write(self, run: MirroredRun, points: Collection[Point]) -> None:
        writer = self._writers[run.id]
        for point in points:
            value = Summary.Value(tag=point.name, simple_value=point.value)
            writer.add_event(Event(step=point.step, summary=Summary(value=[value])))
        writer.flush()

    def end(self, run: MirroredRun, state: RunState) -> None:
        self._writers.pop(run.id).close()


def _events(folder: Path) -> Iterator[Event]:
    for file in sorted(folder.glob("events.out.tfevents.*")):
        yield from EventFileLoader(str(file)).Load()
