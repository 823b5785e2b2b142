"""From the wire's guide to a compiled grammar, away from the event loop and the engine's thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from oe_wire import v1
from reference_engine.errors import GuideError
from reference_engine.guided.guide import Grammar, Guide, GuideKind
from reference_engine.guided.guides import Guides
from reference_engine.server.rejection import Rejection, invalid

# The limits of sizes keep compilation below 1 s; waiting behind others takes the rest.
COMPILE_SECONDS = 20.0
# llguidance gives up Python's lock while it compiles, so the second core is free to decode.
COMPILERS = 2


class GuideCompiler:
    """Threads of its own, so that slow guides hold up nothing but each other."""

    def __init__(self, guides: Guides) -> None:
        self._guides = guides
        self._threads = ThreadPoolExecutor(COMPILERS, thread_name_prefix="guide")

    async def compile(self, guided: v1.GuidedDecoding) -> Grammar | Rejection:
        """The grammar of a guide that has passed validation, or why there is none."""
        guide = to_guide(guided)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._threads, self._guides.compile, guide)
        try:
            async with asyncio.timeout(COMPILE_SECONDS):
                return await work
        except GuideError as error:
            return invalid(f"guided.{guide.kind.value} {error}")
        except TimeoutError:
            return invalid(
                f"guided.{guide.kind.value} was not compiled within {COMPILE_SECONDS:.0f} s, "
                "expected a smaller one"
            )

    def close(self) -> None:
        """Take no more work; nothing waits for what is being compiled."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def to_guide(guided: v1.GuidedDecoding) -> Guide:
    """The guide of a message in which one is set."""
    kind = GuideKind(guided.WhichOneof("guide"))
    if kind is GuideKind.CHOICE:
        return Guide(kind, choices=tuple(guided.choice.choices))
    if kind is GuideKind.JSON_OBJECT:
        return Guide(kind)
    return Guide(kind, text=getattr(guided, kind.value))
