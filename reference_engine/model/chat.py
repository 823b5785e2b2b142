"""Chat templates: the Jinja text by which a model turns messages into its prompt."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from reference_engine.errors import ChatTemplateError, CheckpointError


def _refuse(message: str) -> NoReturn:
    """What a template calls as `raise_exception`."""
    raise ChatTemplateError(f"the model's chat template refused the messages: {message}")


def _now(pattern: str) -> str:
    """What a template calls as `strftime_now`: local time, as in Hugging Face's templates."""
    return datetime.now().astimezone().strftime(pattern)


class ChatTemplate:
    """A compiled template. It runs in Jinja's sandbox: it comes with the weights, from anywhere."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals.update(raise_exception=_refuse, strftime_now=_now)
        environment.filters["tojson"] = lambda value, **options: json.dumps(
            value, ensure_ascii=False, **options
        )
        self._special_tokens = dict(special_tokens)
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise CheckpointError(f"chat_template: not valid Jinja: {error}") from error

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt up to the place where the assistant's answer starts.

        Raises ChatTemplateError if the template refuses the messages or fails on them.
        """
        try:
            return self._template.render(
                messages=messages, add_generation_prompt=True, **self._special_tokens
            )
        except ChatTemplateError:
            raise
        except Exception as error:  # a template is a foreign program and can fail in any way
            raise ChatTemplateError(
                f"the model's chat template failed on the messages: {error}"
            ) from error
