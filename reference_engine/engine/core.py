"""The engine without its thread: requests in, one step at a time, events out."""

from dataclasses import dataclass, field

from reference_engine.engine.logprobs import score_tokens
from reference_engine.engine.output import (
    Event,
    FinishReason,
    OutputFinished,
    PromptScored,
    RequestFailed,
    Score,
    StopMatch,
    Token,
    TokensProduced,
    Usage,
)
from reference_engine.engine.output_text import OutputText
from reference_engine.engine.request import Request
from reference_engine.engine.runner import PromptRows, Runner, StepLogits
from reference_engine.engine.sampler import Sampler
from reference_engine.engine.scheduler import Scheduler
from reference_engine.engine.sequence import Sequence
from reference_engine.model.tokenizer import Tokenizer


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request in the engine: its outputs and what has been produced for it."""

    request: Request
    sequences: list[Sequence] = field(default_factory=list)
    held: list[Sequence] = field(default_factory=list)
    num_open: int = 0
    completion_tokens: int = 0

    def usage(self) -> Usage:
        """Token counts up to now."""
        return Usage(len(self.request.prompt), self.completion_tokens, cached_prompt_tokens=0)


Emitted = tuple[OpenRequest, Event]


class EngineCore:
    """One step: schedule, run, sample, stop. Not thread-safe: one thread calls it.

    window: tokens of prompt and output together, at most what the cache holds.
    """

    def __init__(
        self, scheduler: Scheduler, runner: Runner, tokenizer: Tokenizer, window: int
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._tokenizer = tokenizer
        self._sampler = Sampler(tokenizer.eos_token_ids)
        self._window = window
        self._open: dict[Sequence, OpenRequest] = {}
        self._order = 0

    @property
    def busy(self) -> bool:
        """Whether a step has work to do."""
        return bool(self._open)

    def add(self, request: Request) -> OpenRequest:
        """Queue a request whose prompt is within the window."""
        opened = OpenRequest(request)
        room = self._window - len(request.prompt)
        limit = request.stopping.max_tokens
        for index in range(request.num_sequences):
            self._order += 1
            sequence = Sequence(
                request=request,
                output_index=index,
                order=self._order,
                text=OutputText(self._tokenizer, request.stopping),
                max_new=room if limit is None else min(room, limit),
                token_ids=list(request.prompt),
            )
            opened.sequences.append(sequence)
            self._open[sequence] = opened
        opened.num_open = request.num_sequences
        self._queue(opened)
        return opened

    def _queue(self, opened: OpenRequest) -> None:
        first, *others = opened.sequences
        start = opened.request.scoring.prompt_start
        if start is not None:
            first.prompt_scores = [Token(opened.request.prompt[0])] if start == 0 else []
            # The other outputs wait, because the prompt's scores come before every token.
            opened.held, others = others, []
        for sequence in (first, *others):
            self._scheduler.add(sequence)

    def abort(self, opened: OpenRequest) -> list[Emitted]:
        """End every open output as CANCELLED and free its blocks; empty if none was open."""
        events: list[Emitted] = []
        for sequence in opened.sequences:
            if not sequence.finished:
                self._finish(sequence, FinishReason.CANCELLED, None, events)
        return events

    def abort_all(self) -> list[Emitted]:
        """Abort every open request."""
        opened = list(dict.fromkeys(self._open.values()))
        return [event for one in opened for event in self.abort(one)]

    def fail_all(self, message: str) -> list[Emitted]:
        """End every open request with a fault and start from an empty cache."""
        opened = list(dict.fromkeys(self._open.values()))
        self._open.clear()
        self._scheduler.clear()
        events: list[Emitted] = []
        for one in opened:
            for sequence in one.sequences:
                sequence.finished = True
            usage = one.usage() if one.completion_tokens else None
            events.append((one, RequestFailed(message, usage)))
        return events

    def step(self) -> list[Emitted]:
        """Run one step and say what it produced, in the order of the readers' events."""
        rows = self._scheduler.schedule()
        logits = self._runner.run(rows)
        for row in rows:
            row.sequence.num_computed += row.num_tokens
        events: list[Emitted] = []
        for prompt in logits.prompts:
            self._score_prompt(prompt)
        for row in rows:
            self._release_prompt(row.sequence, events)
        tokens = self._sampler.sample(logits.logits, logits.sampling)
        scores = self._score_outputs(logits, tokens)
        for number, sequence in enumerate(logits.sampling):
            self._advance(sequence, Token(tokens[number], scores.get(number)), events)
        return events

    def _score_prompt(self, rows: PromptRows) -> None:
        request = rows.sequence.request
        ids = list(request.prompt[rows.first : rows.first + rows.count])
        scores = score_tokens(rows.logits, ids, request.scoring.prompt_candidates)
        if rows.sequence.prompt_scores is not None:
            rows.sequence.prompt_scores += map(Token, ids, scores)

    def _release_prompt(self, sequence: Sequence, events: list[Emitted]) -> None:
        """Send the prompt's scores once the whole prompt has been computed."""
        if sequence.prompt_scores is None or sequence.num_computed < sequence.num_prompt:
            return
        opened = self._open[sequence]
        events.append((opened, PromptScored(tuple(sequence.prompt_scores))))
        sequence.prompt_scores = None
        for other in opened.held:
            self._scheduler.add(other)
        opened.held = []

    def _score_outputs(self, logits: StepLogits, tokens: list[int]) -> dict[int, Score]:
        scores = {}
        for number, sequence in enumerate(logits.sampling):
            scoring = sequence.request.scoring
            if scoring.output:
                row = logits.logits[number : number + 1]
                scores[number] = score_tokens(row, [tokens[number]], scoring.output_candidates)[0]
        return scores

    def _advance(self, sequence: Sequence, token: Token, events: list[Emitted]) -> None:
        """Take a drawn token: stop, finish at the limit, or go on."""
        if sequence.max_new == 0:
            self._finish(sequence, FinishReason.LENGTH, None, events)
            return
        opened = self._open[sequence]
        opened.completion_tokens += 1
        sequence.token_ids.append(token.token_id)
        stop = self._stop(sequence, token)
        if stop is not None:
            self._finish(sequence, FinishReason.STOP, stop, events)
        elif sequence.num_output >= sequence.max_new:
            self._finish(sequence, FinishReason.LENGTH, None, events)
        else:
            tokens, text = sequence.text.release()
            if tokens or text:
                events.append((opened, TokensProduced(sequence.output_index, tokens, text)))

    def _stop(self, sequence: Sequence, token: Token) -> StopMatch | None:
        """Hand the token to the output's text; what stopped it, if anything did."""
        stopping = sequence.request.stopping
        if token.token_id in stopping.stop_token_ids:
            sequence.text.add_stop_token(token, included=stopping.include_stop)
            return StopMatch(token_id=token.token_id)
        if token.token_id in self._tokenizer.eos_token_ids and not stopping.ignore_eos:
            sequence.text.add_stop_token(token, included=False)
            return StopMatch(eos_token_id=token.token_id)
        return sequence.text.add(token, may_stop=sequence.num_output > stopping.min_tokens)

    def _finish(
        self,
        sequence: Sequence,
        reason: FinishReason,
        stop: StopMatch | None,
        events: list[Emitted],
    ) -> None:
        opened = self._open.pop(sequence)
        sequence.finished = True
        if sequence not in opened.held:
            self._scheduler.remove(sequence)
        tokens, text = sequence.text.finish()
        if tokens or text:
            events.append((opened, TokensProduced(sequence.output_index, tokens, text)))
        opened.num_open -= 1
        usage = None if opened.num_open else opened.usage()
        events.append((opened, OutputFinished(sequence.output_index, reason, stop, usage)))
