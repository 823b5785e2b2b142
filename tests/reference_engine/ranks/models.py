"""What ranks of these tests load; found by name in their processes."""

import os
from typing import Any

from reference_engine.errors import ModelNotFoundError
from reference_engine.model.load import LoadedModel
from tests.reference_engine.engine.fakes import random_model
from tests.reference_engine.server.running import fake_model

POISON = 255
"""A prompt that begins with this token makes the step throw that computes it."""


class PoisonableModel:
    """The fake model, unless a step has the poison."""

    def __init__(self) -> None:
        self.model = random_model()
        self.device = self.model.device

    def __call__(self, batch: Any, cache: Any) -> Any:
        # At the start only: any token may be among those that are produced.
        if ((batch.token_ids == POISON) & (batch.positions == 0)).any():
            raise RuntimeError("poisoned")
        return self.model(batch, cache)


def load() -> LoadedModel:
    return fake_model(PoisonableModel())


def load_nothing() -> LoadedModel:
    raise ModelNotFoundError("model 'nothing' is not here")


def load_and_die() -> LoadedModel:
    os._exit(7)
