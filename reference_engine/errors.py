"""Exceptions of the reference engine, one tree.

EngineException
  ConfigError              an option or a setting of the engine is wrong
  ModelError               a model can't be found, read or run
    ModelNotFoundError       no such model here; the text says what brings it
    CheckpointError          a file of the model is missing, damaged or inconsistent
    UnsupportedModelError    a sound model that needs something the engine lacks
  ChatTemplateError        the model's chat template refused the messages
  PullError                a model could not be fetched
"""


class EngineException(Exception):
    """Base of every error that the engine raises on purpose."""


class ConfigError(EngineException):
    """An option or a setting is wrong; the text names it, its value and what was expected."""


class ModelError(EngineException):
    """A model can't be found, read or run."""


class ModelNotFoundError(ModelError):
    """No such model on this machine; the text says what brings it."""


class CheckpointError(ModelError):
    """A file of the model is missing, damaged or disagrees with another one."""


class UnsupportedModelError(ModelError):
    """The model is sound, but needs an architecture or a feature that the engine lacks."""


class ChatTemplateError(EngineException):
    """The model's chat template refused the messages (for example an unknown role)."""


class PullError(EngineException):
    """A model could not be fetched or failed its check."""
