"""What ranks of these tests load; found by name in their processes."""

import os
from typing import Any

from reference_engine.errors import ModelNotFoundError
from reference_engine.model.load import LoadedModel
from tests.reference_engine.engine.fakes import random_model
from tests.reference_engine.server.running import fake_model

POISON = 255
"""A token that makes the step throw which computes it."""


class PoisonableModel:
    """The fake model, unless a step has the poison."""

    def __init__(self) -> None:
        self.model = random_model()
        self.device = self.model.device

    def __call__(self, batch: Any, cache: Any) -> Any:
        if POISON in batch.token_ids:
            raise RuntimeError("poisoned")
        return self.model(batch, cache)


def load() -> LoadedModel:
    return fake_model(PoisonableModel())


def load_nothing() -> LoadedModel:
    raise ModelNotFoundError("model 'nothing' is not here")


def load_and_die() -> LoadedModel:
    os._exit(7)
