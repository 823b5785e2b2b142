"""What is legal now, with its number: everything that advertises or enforces it reads it here."""

from collections.abc import Callable
from dataclasses import replace

from reference_engine.server.deployment import Deployment, RequestLimits


class Revisions:
    """The deployment in force. Used on the event loop's thread only.

    A change replaces it whole, with a greater capability_revision, so equal pairs of epoch and
    revision have equal contents.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._current = deployment
        self._subscribers: list[Callable[[Deployment], None]] = []

    @property
    def current(self) -> Deployment:
        """What holds for requests from now on."""
        return self._current

    def change(self, limits: RequestLimits) -> Deployment:
        """Put other limits in force and tell the subscribers; equal limits change nothing."""
        if limits != self._current.limits:
            revision = self._current.capability_revision + 1
            self._current = replace(self._current, limits=limits, capability_revision=revision)
            for subscriber in tuple(self._subscribers):
                subscriber(self._current)
        return self._current

    def subscribe(self, subscriber: Callable[[Deployment], None]) -> Callable[[], None]:
        """Have each change told; the function returned ends that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)
