"""What a slow reader gets."""

import asyncio

from reference_engine.engine.output import (
    FinishReason,
    OutputFinished,
    Token,
    TokensProduced,
    Usage,
)
from reference_engine.engine.stream import Stream
from tests.reference_engine.engine.fakes import request

END = OutputFinished(0, FinishReason.LENGTH, usage=Usage(2, 3, 0))


async def read_all(stream: Stream) -> list[object]:
    return [event async for event in stream.events()]


def test_piled_up_tokens_come_together():
    """Neighbouring tokens of one output are joined, nothing is lost or reordered."""

    async def main() -> list[object]:
        stream = Stream(request())
        for index, token in ((0, 1), (0, 2), (1, 3), (0, 4), (0, 5)):
            stream.put(TokensProduced(index, (Token(token),), str(token)))
        stream.put(END)
        return await read_all(stream)

    assert asyncio.run(main()) == [
        TokensProduced(0, (Token(1), Token(2)), "12"),
        TokensProduced(1, (Token(3),), "3"),
        TokensProduced(0, (Token(4), Token(5)), "45"),
        END,
    ]


def test_a_fast_reader_gets_every_event_at_once():
    """A reader that waits gets each event when it comes."""

    async def main() -> list[object]:
        stream = Stream(request())
        reader = asyncio.create_task(read_all(stream))
        for token in (1, 2):
            stream.put(TokensProduced(0, (Token(token),), ""))
            for _ in range(3):
                await asyncio.sleep(0)
        stream.put(END)
        return await reader

    assert asyncio.run(main()) == [
        TokensProduced(0, (Token(1),), ""),
        TokensProduced(0, (Token(2),), ""),
        END,
    ]
