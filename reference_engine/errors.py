"""Exceptions of the reference engine, one tree.

EngineException
  ConfigError              an option or a setting of the engine is wrong
  ModelError               a model can't be found, read or run
    ModelNotFoundError       no such model here; the text says what brings it
    CheckpointError          a file of the model is missing, damaged or inconsistent
    UnsupportedModelError    a sound model that needs something the engine lacks
  ChatTemplateError        the model's chat template refused the messages
  GuideError               a guide of guided decoding does not compile
  AdapterError             an adapter, or what is asked about one, is malformed
    UnsupportedAdapterError  a sound adapter that needs what the engine lacks
    AdapterConflictError     id, name or path belongs to another loaded adapter
    UnknownAdapterError      no adapter of that name is loaded
    TooManyAdaptersError     a limit of loaded or waited-for adapters is reached
    AdapterChangedError      the files of a loaded adapter are not what they were
  AdminError               an administrative operation could not be carried out
    WorkerError              it failed in a worker
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


class GuideError(EngineException):
    """A guide does not compile; the text says what was expected and repeats nothing of it."""


class AdapterError(EngineException):
    """An adapter or a request about one is malformed; the text repeats no path and no name."""


class UnsupportedAdapterError(AdapterError):
    """The adapter is sound, but uses something that the engine lacks."""


class AdapterConflictError(AdapterError):
    """Id, name or path belongs to a loaded adapter that is not the same in all three."""


class UnknownAdapterError(AdapterError):
    """No adapter of that name is loaded."""


class TooManyAdaptersError(AdapterError):
    """No more adapters can be loaded, or waited for."""


class AdapterChangedError(AdapterError):
    """A loaded adapter had to be read again, and its files are gone or not the same."""


class AdminError(EngineException):
    """An administrative operation could not be carried out."""


class WorkerError(AdminError):
    """An operation failed in a worker; the text says in which and why."""


class PullError(EngineException):
    """A model could not be fetched or failed its check."""
