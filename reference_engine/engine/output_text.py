"""One output as its reader sees it: records and text, with stops applied and nothing torn."""

from reference_engine.engine.detokenizer import Detokenizer, TokenBytes
from reference_engine.engine.hold_back import HoldBack, Release
from reference_engine.engine.output import StopMatch, Token
from reference_engine.engine.request import Stopping
from reference_engine.engine.stop import Match, StopText


class OutputText:
    """Takes tokens one by one and releases what is decided.

    An excluded stop text leaves the text. Of its records only the last one is withheld, and only
    when all its text went with the stop: so the released text is always the beginning of the
    decoded records, and records plus at most one are the tokens that were produced.
    """

    def __init__(self, tokenizer: TokenBytes, stopping: Stopping) -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._include_stop = stopping.include_stop
        self._stop_text = StopText(stopping.stop_texts)
        self._held = HoldBack()
        self._stopped = False

    def add(self, token: Token, *, may_stop: bool) -> StopMatch | None:
        """Take a token; the stop text that it completed, unless stopping is not allowed yet."""
        begin = self._held.length
        piece = self._detokenizer.add(token.token_id)
        self._held.add(token, piece, incomplete=self._detokenizer.incomplete)
        match = self._stop_text.add(piece)
        if match is None or not may_stop:
            return None
        self._stop_at(match, begin)
        return StopMatch(text=match.text)

    def add_stop_token(self, token: Token, *, included: bool) -> None:
        """Take the token whose id ended the output; its record and text go out if included."""
        if included:
            piece = self._detokenizer.add(token.token_id)
            self._held.add(token, piece, incomplete=self._detokenizer.incomplete)

    def release(self) -> Release:
        """Records and text that no later token can change."""
        return self._held.release(0 if self._include_stop else self._stop_text.undecided)

    def finish(self) -> Release:
        """The rest, at the end of the output."""
        if not self._stopped:
            self._held.add_text(self._detokenizer.flush())
        return self._held.release_all()

    def _stop_at(self, match: Match, begin: int) -> None:
        self._stopped = True
        if self._include_stop:
            self._held.cut(match.end)
            return
        self._held.cut(match.start)
        if begin >= match.start:
            self._held.drop_last_record()
