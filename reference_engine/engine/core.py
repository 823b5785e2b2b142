"""The engine without its thread: requests in, one step at a time, events out."""

from dataclasses import dataclass, field

from torch import Tensor

from reference_engine.engine.guidance import GUIDE_FAILED, token_masks
from reference_engine.engine.load import measure
from reference_engine.engine.logprobs import score_tokens
from reference_engine.engine.operation import Operation
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
from reference_engine.guided.guides import Guides
from reference_engine.lora.low_rank import AdapterWeights
from reference_engine.model.tokenizer import Tokenizer


@dataclass(slots=True, eq=False)
class OpenRequest:
    """A request in the engine: its outputs and what has been produced for it.

    held: outputs that wait until the first one has computed the prompt that they share.
    fail_after: tokens after which it ends with a fault, in a test of that; None for never.
    """

    request: Request
    sequences: list[Sequence] = field(default_factory=list)
    held: list[Sequence] = field(default_factory=list)
    num_open: int = 0
    completion_tokens: int = 0
    fail_after: int | None = None

    def usage(self) -> Usage:
        """Token counts up to now."""
        cached = self.sequences[0].cached_prompt_tokens or 0
        return Usage(len(self.request.prompt), self.completion_tokens, cached)


INJECTED = "the engine failed while it computed this request: a fault of a test run"

Emitted = tuple[OpenRequest, Event]


class EngineCore:
    """One step: schedule, run, sample, stop. Not thread-safe: one thread calls it.

    window: tokens of prompt and output together, at most what the cache holds. `load` is
    replaced whole after each change, so any thread may read it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        tokenizer: Tokenizer,
        window: int,
        guides: Guides | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._tokenizer = tokenizer
        self._sampler = Sampler(tokenizer.eos_token_ids)
        self._window = window
        self._guides = guides or Guides(tokenizer)
        self._open: dict[Sequence, OpenRequest] = {}
        self._order = 0
        self._num_open = 0
        self._open_prompt_tokens = 0
        self._holds_new = False
        self._holds_all = False
        self._newcomers: list[OpenRequest] = []
        self.load = measure(scheduler, 0, 0)

    @property
    def busy(self) -> bool:
        """Whether a step has work to do."""
        return self._scheduler.busy and not self._holds_all

    def add(self, request: Request, fail_after: int | None = None) -> OpenRequest:
        """Queue a request whose prompt is within the window. fail_after: see OpenRequest."""
        opened = OpenRequest(request, fail_after=fail_after)
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
                matcher=self._guides.matcher(request.grammar) if request.grammar else None,
            )
            opened.sequences.append(sequence)
            self._open[sequence] = opened
        opened.num_open = request.num_sequences
        first, *opened.held = opened.sequences
        start = request.scoring.prompt_start
        if start is not None:
            first.prompt_scores = [Token(request.prompt[0])] if start == 0 else []
        if self._holds_new:
            self._newcomers.append(opened)
        else:
            self._scheduler.add(first)
        self._num_open += 1
        self._open_prompt_tokens += len(request.prompt)
        self._publish()
        return opened

    def put_adapter(self, key: str, weights: AdapterWeights) -> list[Emitted]:
        """Add an adapter under a new key; requests may name it from now on. Emits nothing."""
        self._runner.adapters.put(key, weights)
        return []

    def drop_adapter(self, key: str) -> list[Emitted]:
        """Forget an adapter that no open request names. Emits nothing."""
        self._runner.adapters.drop(key)
        return []

    def operate(self, operation: Operation) -> list[Emitted]:
        """Do what an administrator asks for. Emits nothing."""
        match operation:
            case Operation.HOLD_NEW:
                self._holds_new = True
            case Operation.HOLD_ALL:
                self._holds_all = True
            case Operation.RELEASE:
                self._holds_new = self._holds_all = False
                newcomers, self._newcomers = self._newcomers, []
                for opened in newcomers:
                    self.resume(opened)
            case Operation.CLEAR_CACHE:
                self._scheduler.cache.clear()
        self._publish()
        return []

    def _publish(self) -> None:
        """Show the outside what has changed: the load, and the cache's events."""
        self._scheduler.cache.events.flush()
        self.load = measure(self._scheduler, self._num_open, self._open_prompt_tokens)

    def park(self, opened: OpenRequest) -> None:
        """Set an open request aside: it keeps its tokens, but neither blocks nor a place."""
        for sequence in opened.sequences:
            if not sequence.finished and sequence not in opened.held:
                self._scheduler.remove(sequence)
        self._publish()

    def resume(self, opened: OpenRequest) -> None:
        """Take up a request that was set aside, at the place of its age; else nothing happens."""
        for sequence in opened.sequences:
            known = sequence in opened.held or self._scheduler.knows(sequence)
            if not sequence.finished and not known:
                self._scheduler.add(sequence)
        self._publish()

    def abort(self, opened: OpenRequest) -> list[Emitted]:
        """End every open output as CANCELLED and free its blocks; empty if none was open."""
        events: list[Emitted] = []
        for sequence in opened.sequences:
            if not sequence.finished:
                self._finish(sequence, FinishReason.CANCELLED, None, events)
        self._publish()
        return events

    def abort_all(self) -> list[Emitted]:
        """Abort every open request."""
        opened = list(dict.fromkeys(self._open.values()))
        return [event for one in opened for event in self.abort(one)]

    def fail_all(self, message: str) -> list[Emitted]:
        """End every open request with a fault and start from an empty cache."""
        opened = list(dict.fromkeys(self._open.values()))
        self._open.clear()
        self._newcomers.clear()
        self._scheduler.clear()
        self._num_open = self._open_prompt_tokens = 0
        events: list[Emitted] = []
        for one in opened:
            for sequence in one.sequences:
                sequence.finished = True
            usage = one.usage() if one.completion_tokens else None
            events.append((one, RequestFailed(message, usage)))
        self._publish()
        return events

    def step(self) -> list[Emitted]:
        """Run one step and say what it produced, in the order of the readers' events."""
        rows = self._scheduler.schedule()
        logits = self._runner.run(rows)
        for row in rows:
            row.sequence.num_computed += row.num_tokens
            self._scheduler.cache.store(row.sequence)
        events: list[Emitted] = []
        for prompt in logits.prompts:
            self._score_prompt(prompt)
        for row in rows:
            self._release_prompt(row.sequence, events)
        sequences, drawn_from = self._fork(logits)
        masks = token_masks(sequences, self._tokenizer.vocab_size)
        tokens = self._sampler.sample(drawn_from, sequences, masks)
        scores = self._score_outputs(drawn_from, sequences, tokens)
        for number, sequence in enumerate(sequences):
            self._advance(sequence, Token(tokens[number], scores.get(number)), events)
        self._publish()
        return events

    def _fork(self, logits: StepLogits) -> tuple[list[Sequence], Tensor]:
        """The sequences to draw for, and their logits [sequences, vocab].

        The outputs of a request begin when the first has computed the prompt: each draws its
        first token from the same logits.
        """
        sequences: list[Sequence] = []
        places: list[int] = []
        for place, sequence in enumerate(logits.sampling):
            opened = self._open[sequence]
            forked = [one for one in opened.held if self._scheduler.fork(sequence, one)]
            opened.held = []
            sequences += (sequence, *forked)
            places += [place] * (1 + len(forked))
        if len(sequences) == len(logits.sampling):
            return sequences, logits.logits
        return sequences, logits.logits[places]

    def _score_prompt(self, rows: PromptRows) -> None:
        sequence = rows.sequence
        scoring = sequence.request.scoring
        ids = list(sequence.request.prompt[rows.first : rows.first + rows.count])
        candidates = [scoring.prompt_candidates] * len(ids)
        scores = score_tokens(rows.logits, ids, candidates)
        if sequence.prompt_scores is not None:
            sequence.prompt_scores += map(Token, ids, scores)

    def _release_prompt(self, sequence: Sequence, events: list[Emitted]) -> None:
        """Send the prompt's scores once the whole prompt has been computed."""
        if sequence.prompt_scores is None or sequence.num_computed < sequence.num_prompt:
            return
        events.append((self._open[sequence], PromptScored(tuple(sequence.prompt_scores))))
        sequence.prompt_scores = None

    def _score_outputs(
        self, logits: Tensor, sequences: list[Sequence], tokens: list[int]
    ) -> dict[int, Score]:
        """The scores of the drawn tokens, for those who asked; logits are [sequences, vocab]."""
        wanted = [row for row, one in enumerate(sequences) if one.request.scoring.output]
        if not wanted:
            return {}
        ids = [tokens[row] for row in wanted]
        candidates = [sequences[row].request.scoring.output_candidates for row in wanted]
        rows = logits if len(wanted) == len(sequences) else logits[wanted]
        return dict(zip(wanted, score_tokens(rows, ids, candidates), strict=True))

    def _advance(self, sequence: Sequence, token: Token, events: list[Emitted]) -> None:
        """Take a drawn token: stop, finish at the limit, or go on."""
        if sequence.finished:
            return
        if sequence.max_new == 0:
            self._finish(sequence, FinishReason.LENGTH, None, events)
            return
        opened = self._open[sequence]
        if opened.fail_after is not None and opened.completion_tokens >= opened.fail_after:
            self._fail(opened, INJECTED, events)
            return
        if sequence.matcher is not None and not sequence.matcher.advance(token.token_id):
            self._fail(opened, GUIDE_FAILED, events, invalid=True)
            return
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
        guided = sequence.matcher is not None
        if guided and sequence.num_output <= stopping.min_tokens:
            # Unguided rows draw no stop token here; a guide can leave nothing else.
            return sequence.text.add(token, may_stop=False)
        if token.token_id in stopping.stop_token_ids:
            sequence.text.add_stop_token(token, included=stopping.include_stop)
            return StopMatch(token_id=token.token_id)
        ends = guided or not stopping.ignore_eos
        if token.token_id in self._tokenizer.eos_token_ids and ends:
            sequence.text.add_stop_token(token, included=False)
            return StopMatch(eos_token_id=token.token_id)
        return sequence.text.add(token, may_stop=sequence.num_output > stopping.min_tokens)

    def _fail(
        self,
        opened: OpenRequest,
        message: str,
        events: list[Emitted],
        *,
        invalid: bool = False,
    ) -> None:
        """End one request with an error, behind the tokens that it has produced; invalid: its own
        options cannot be met.
        """
        for sequence in opened.sequences:
            if not sequence.finished:
                del self._open[sequence]
                sequence.finished = True
                if sequence not in opened.held:
                    self._scheduler.remove(sequence)
                tokens, text = sequence.text.finish()
                if tokens or text:
                    events.append((opened, TokensProduced(sequence.output_index, tokens, text)))
        opened.num_open = 0
        self._num_open -= 1
        self._open_prompt_tokens -= len(opened.request.prompt)
        usage = opened.usage() if opened.completion_tokens else None
        events.append((opened, RequestFailed(message, usage, invalid=invalid)))

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
        if not opened.num_open:
            self._num_open -= 1
            self._open_prompt_tokens -= len(opened.request.prompt)
        usage = None if opened.num_open else opened.usage()
        events.append((opened, OutputFinished(sequence.output_index, reason, stop, usage)))
