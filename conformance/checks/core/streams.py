"""What streams look like: the rows that laws judge on every call (STREAM-001 to 024)."""

from __future__ import annotations

from conformance.checks.check import Check
from conformance.checks.core import stream_cases as tables
from conformance.checks.core.failing_requests import any_failing, failing, follow_failure
from conformance.checks.core.laws import follow_optional, law_check
from conformance.strategies import Feature

CHECKS: tuple[Check, ...] = (
    law_check(
        "STREAM-001",
        advice="Copy request_id from the request into every response, the first and last included.",
        table=tables.plain,
    ),
    law_check(
        "STREAM-002",
        advice="Send one event per response; usage alone is no event and belongs on the last one.",
        table=tables.plain,
    ),
    law_check(
        "STREAM-003",
        advice="output_index is optional in the .proto: set it explicitly, also to 0, and number "
        "the outputs of one request from 0.",
        table=tables.counts,
        features=(Feature.SEVERAL,),
    ),
    law_check(
        "STREAM-004",
        advice="Send only what is new since the last message; remember how much of the detokenized "
        "text has been sent.",
        table=tables.longer,
        features=(Feature.LONG,),
    ),
    law_check(
        "STREAM-005",
        advice="Finish each of the num_sequences outputs once, also those that end in the same "
        "step.",
        table=tables.counts,
        features=(Feature.SEVERAL,),
    ),
    law_check(
        "STREAM-006",
        advice="Flush held-back text before GenerationFinished and drop an output from the batch "
        "when it finishes.",
        table=tables.counts,
        features=(Feature.SEVERAL,),
    ),
    law_check(
        "STREAM-007",
        advice="Send PromptOutput once per request, and only when prompt information was asked "
        "for.",
        table=tables.prompt_or_not,
    ),
    law_check(
        "STREAM-008",
        advice="Hold the first TokenOutput back until PromptOutput has been written.",
        table=tables.prompt_info,
        features=(Feature.PROMPT_LOGPROBS,),
    ),
    law_check(
        "STREAM-009",
        advice="Leave logprob, rank and candidates of the first prompt token unset; nothing "
        "predicted it.",
        table=tables.prompt_info,
        features=(Feature.PROMPT_LOGPROBS,),
    ),
    law_check(
        "STREAM-010",
        advice="Send one record per prompt token from prompt_logprob_start on, whatever part of "
        "the prompt came from a cache.",
        table=tables.prompt_info,
        features=(Feature.PROMPT_LOGPROBS, Feature.TOKENS),
    ),
    law_check(
        "STREAM-011",
        advice="Close the call with OK right after EngineError; the error event has replaced the "
        "status.",
        table=failing,
        strategy=any_failing,
        body=follow_failure,
    ),
    law_check(
        "STREAM-012",
        advice="Close the stream as soon as the last output is finished; send nothing after it.",
        table=tables.counts,
    ),
    law_check(
        "STREAM-013",
        advice="Before closing with OK make sure that each output got its terminal event; on the "
        "error path send EngineError.",
        table=tables.counts,
        features=(Feature.SEVERAL,),
    ),
    law_check(
        "STREAM-014",
        advice="Set stop_match for STOP and leave it unset for LENGTH and CANCELLED.",
        table=tables.stops,
        features=(Feature.STOP_TEXT,),
    ),
    law_check(
        "STREAM-015",
        advice="Report in stop_match the caller's own condition that matched, as it was given.",
        table=tables.stops,
        features=(Feature.STOP_TEXT,),
    ),
    law_check(
        "STREAM-016",
        advice="Hold text back while it may be the start of a stop text, and cut at the match "
        "unless include_stop_in_output is true.",
        table=tables.stop_tails,
        features=(Feature.STOP_TEXT,),
    ),
    law_check(
        "STREAM-017",
        advice="With ignore_eos leave the end tokens out of the stop test; they are ordinary "
        "output then.",
        table=tables.no_eos,
        features=(Feature.IGNORE_EOS, Feature.LONG),
    ),
    law_check(
        "STREAM-018",
        advice="Test stop conditions and EOS only from min_tokens produced tokens on.",
        table=tables.min_tokens,
        features=(Feature.MIN_TOKENS, Feature.STOP_TEXT),
    ),
    law_check(
        "STREAM-019",
        advice="Count the tokens of each output by itself and finish with LENGTH at max_tokens; "
        "prompt tokens don't count.",
        table=tables.plain,
        features=(Feature.LONG,),
    ),
    law_check(
        "STREAM-020",
        advice="Set logprob on every record, from a log_softmax in float32; clamp -inf and "
        "rounding above 0.",
        table=tables.logprobs,
        features=(Feature.OUTPUT_LOGPROBS,),
    ),
    law_check(
        "STREAM-021",
        advice="Leave logprob, rank and candidates unset unless return_output_logprobs is true.",
        table=tables.plain,
    ),
    law_check(
        "STREAM-022",
        advice="Answer candidates by the selection: the best top_n sorted by rank, exactly the "
        "ids asked for, or the whole vocabulary.",
        table=tables.candidates,
        features=(Feature.OUTPUT_CANDIDATES,),
    ),
    law_check(
        "STREAM-023",
        advice="Count ranks from 1 and break ties, so that no two candidates of a position share "
        "one.",
        table=tables.ranks,
        body=follow_optional,
        features=(Feature.OUTPUT_CANDIDATES,),
    ),
    law_check(
        "STREAM-024",
        advice="Skip a TokenOutput that would carry neither a token nor text.",
        table=tables.longer,
        features=(Feature.LONG,),
    ),
)
