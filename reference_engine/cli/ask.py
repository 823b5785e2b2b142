"""`oe-engine ask`: one question to a served chat model, over gRPC like any other client's."""

import secrets
from collections.abc import Iterator

import grpc
import rich_click as click

from oe_wire import v1
from oe_wire.services import METHODS
from reference_engine.errors import ConfigError

GENERATE = METHODS["openengine.v1.Inference/Generate"]
SERVER_INFO = METHODS["openengine.v1.Control/GetServerInfo"]
_CONNECT_SECONDS = 10.0


@click.command()
@click.argument("question")
@click.option("--target", default="127.0.0.1:50051", show_default=True, help="host:port")
@click.option(
    "--model", help="name or path that the template is read from (default: the served name)"
)
@click.option("--max-tokens", type=click.IntRange(min=1), default=256, show_default=True)
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True)
@click.option("--raw", is_flag=True, help="send the question as it is, without a chat template")
def ask(
    question: str,
    *,
    target: str,
    model: str | None,
    max_tokens: int,
    temperature: float,
    raw: bool,
) -> None:
    """Ask a served model one QUESTION and print the answer as it comes.

    The protocol carries prompts, not chats: the model's own chat template is put around the
    question here, on the client's side.
    """
    with grpc.insecure_channel(target) as channel:
        try:
            served = _served_model(channel)
            prompt = question if raw else _chat_prompt(model or served, question)
            request = v1.GenerateRequest(
                request_id=f"ask-{secrets.token_hex(8)}", model=served, prompt=prompt
            )
            request.sampling.temperature = temperature
            request.stopping.max_tokens = max_tokens
            for text in _texts(channel, request):
                click.echo(text, nl=False)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            raise ConfigError(f"--target {target}: {code.name}: {details}") from error
    click.echo()


def _served_model(channel: grpc.Channel) -> str:
    call = channel.unary_unary(
        SERVER_INFO.path, v1.GetServerInfoRequest.SerializeToString, v1.ServerInfo.FromString
    )
    info = call(v1.GetServerInfoRequest(), timeout=_CONNECT_SECONDS, wait_for_ready=True)
    if not info.supported_models:
        raise ConfigError("the engine serves no model, expected at least one")
    return str(info.supported_models[0])


def _chat_prompt(model: str, question: str) -> str:
    # torch takes seconds to import, which `--help` and `--raw` should not wait for.
    from reference_engine.model.load import load_model  # noqa: PLC0415

    prompt = load_model(model).tokenizer.chat_prompt([{"role": "user", "content": question}])
    if prompt is None:
        raise ConfigError(f"model {model!r} has no chat template, expected --raw")
    return prompt


def _texts(channel: grpc.Channel, request: v1.GenerateRequest) -> Iterator[str]:
    call = channel.unary_stream(
        GENERATE.path, v1.GenerateRequest.SerializeToString, v1.GenerateResponse.FromString
    )
    for response in call(request):
        if response.HasField("error"):
            raise ConfigError(f"the engine failed: {response.error.message}")
        if response.HasField("token"):
            yield response.token.text
