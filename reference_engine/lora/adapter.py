"""A loaded adapter: its names, and what tells it from every other one ever loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Adapter:
    """`path` is as the caller wrote it; `digest` is of the files as they were when loaded.

    serial: number of the load in this process, so that a name loaded again is another adapter.
    """

    lora_id: int
    name: str
    path: str
    serial: int
    digest: bytes

    @property
    def key(self) -> str:
        """Names the adapter in the engine and in the keys of its cached blocks."""
        return f"lora:{self.serial}:{self.lora_id}:{self.name}"
