"""One look at the load of all ranks, as the messages that watchers want of it."""

from collections.abc import Sequence
from typing import NamedTuple

from oe_wire import v1
from reference_engine.engine.load import LoadSnapshot
from reference_engine.server.deployment import Deployment
from reference_engine.server.load import load_info
from reference_engine.server.load_slot import Moment


class View(NamedTuple):
    """What a choice of ranks sees. Equal keys: the same load, whenever it was measured."""

    key: bytes
    info: v1.LoadInfo


class Sample:
    """Numbers of one moment. `version` differs from that of the sample before if they do.

    A message is made once for all watchers that report the same ranks.
    """

    def __init__(
        self,
        deployment: Deployment,
        loads: Sequence[LoadSnapshot],
        moment: Moment,
        version: int,
    ) -> None:
        self.loads = loads
        self.moment = moment
        self.version = version
        self._deployment = deployment
        self._views: dict[tuple[int, ...], View] = {}

    def view(self, ranks: tuple[int, ...]) -> View:
        """The totals and the load of each of these ranks."""
        view = self._views.get(ranks)
        if view is None:
            info = load_info(self._deployment, self.loads, 0, ranks)
            key = info.SerializeToString(deterministic=True)
            info.timestamp_unix_nanos = self.moment.unix_nanos
            view = self._views[ranks] = View(key, info)
        return view
