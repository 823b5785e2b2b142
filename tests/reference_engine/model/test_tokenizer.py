import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from reference_engine.errors import ChatTemplateError, CheckpointError, UnsupportedModelError
from reference_engine.model.byte_tokens import byte_alphabet
from reference_engine.model.load import load_model
from reference_engine.model.tokenizer import Tokenizer


@functools.cache
def tiny() -> Tokenizer:
    return load_model("tiny").tokenizer


def byte_level() -> Backend:
    backend = Backend(models.BPE(vocab={c: i for i, c in enumerate(byte_alphabet())}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


@given(st.text())
def test_text_survives_the_round_trip(text: str) -> None:
    """Any text comes back exactly; its tokens' bytes are its UTF-8."""
    ids = tiny().encode(text)
    assert tiny().decode(ids) == text
    assert b"".join(map(tiny().token_bytes, ids)) == text.encode()


@given(st.lists(st.integers(0, 1023)))
def test_decoding_is_the_concatenation_of_token_bytes(ids: list[int]) -> None:
    """For any ids, sensible or not, text is what the joined bytes say."""
    joined = b"".join(tiny().token_bytes(token_id) for token_id in ids)
    assert tiny().decode(ids) == joined.decode(errors="replace")


@given(st.lists(st.integers(0, 1023)), st.integers(0, 20))
def test_bytes_agree_with_the_library(ids: list[int], cut: int) -> None:
    """The byte table says what the `tokenizers` library decodes, where that is valid UTF-8."""
    joined = b"".join(map(tiny().token_bytes, ids[cut:]))
    try:
        text = joined.decode()
    except UnicodeDecodeError:
        return
    assert tiny()._backend.decode(ids[cut:], skip_special_tokens=True) == text


def test_all_bytes_are_tokens() -> None:
    """Every single byte has a token, so no text is out of reach."""
    table = {tiny().token_bytes(token_id) for token_id in range(tiny().vocab_size)}
    assert {bytes([byte]) for byte in range(256)} <= table


def test_special_tokens_add_no_text() -> None:
    """A control token has a name for display, no bytes, and is recognised in a prompt."""
    assert tiny().encode("<|endoftext|>") == [0]
    assert tiny().token_bytes(0) == b""
    assert tiny().token_text(0) == "<|endoftext|>"
    assert tiny().decode([0, *tiny().encode("x"), 0]) == "x"
    assert tiny().special_token_ids == frozenset(range(8))


@pytest.mark.parametrize("token_id", [-1, 1024, 10**9])
def test_an_id_outside_the_vocabulary_is_refused(token_id: int) -> None:
    """No id wraps around or is silently dropped."""
    with pytest.raises(ValueError, match=f"token id {token_id} is not in 0..1023"):
        tiny().token_bytes(token_id)


def test_ids_beyond_the_tokenizer_have_no_bytes() -> None:
    """A model with more rows than tokens may sample them; they add nothing."""
    tokenizer = Tokenizer(byte_level(), vocab_size=300)
    assert tokenizer.token_bytes(299) == b""
    assert tokenizer.vocab_size == 300


def test_a_part_of_a_character_shows_as_replacement() -> None:
    """token_text of half a character is U+FFFD, token_bytes is exact."""
    tokenizer = Tokenizer(byte_level(), 256)
    first, second = tokenizer.encode("é")
    assert tokenizer.token_text(first) == "\ufffd"
    assert tokenizer.token_bytes(first) + tokenizer.token_bytes(second) == "é".encode()


def test_added_tokens_keep_their_own_text() -> None:
    """An ordinary added token stands for its text, also where that isn't in the byte alphabet."""
    backend = byte_level()
    backend.add_tokens([AddedToken("a b\u0120", normalized=False)])
    tokenizer = Tokenizer(backend, 257)
    assert tokenizer.encode("a b\u0120") == [256]
    assert tokenizer.token_bytes(256) == "a b\u0120".encode()


def test_sentencepiece_style_vocabularies() -> None:
    """U+2581 is a space and <0x0A> a byte when the decoder says so."""
    vocab = {"<unk>": 0, "\u2581hi": 1, "<0x0A>": 2, "<0xC3>": 3, "<0xA9>": 4}
    backend = Backend(models.BPE(vocab=vocab, merges=[], byte_fallback=True, unk_token="<unk>"))
    backend.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer = Tokenizer(backend, 5)
    assert tokenizer.decode([1, 1, 2, 3, 4]) == " hi hi\né"


def test_an_unknown_kind_of_vocabulary_is_refused() -> None:
    """Text of an unknown spelling would be wrong, so the decoder is named."""
    backend = byte_level()
    backend.decoder = decoders.WordPiece()
    with pytest.raises(UnsupportedModelError, match=r"decoder\.type is 'WordPiece'"):
        Tokenizer(backend, 256)


def test_more_tokens_than_the_model_has_are_refused() -> None:
    """Ids that would index past the embedding are found at once."""
    with pytest.raises(CheckpointError, match="defines 256 tokens, the model has 255"):
        Tokenizer(byte_level(), 255)


def test_chat_prompt() -> None:
    """The template gets the messages; without a template there is no prompt."""
    messages = [{"role": "user", "content": "hi"}]
    assert tiny().chat_prompt(messages) == "# user: hi\n# assistant:"
    assert Tokenizer(byte_level(), 256).chat_prompt(messages) is None
    assert not Tokenizer(byte_level(), 256).has_chat_template


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].content + 1 }}", "failed on the messages"),
        ("{{ messages[5].content }}", "failed on the messages"),
        ("{{ ''.__class__.__mro__ }}", "failed on the messages"),
        ("{% for i in range(10**9) %}{% endfor %}", "failed on the messages"),
    ],
)
def test_a_template_that_fails_says_so(template: str, expected: str) -> None:
    """Refusals and faults of a template, and what its sandbox forbids, are one kind of error."""
    tokenizer = Tokenizer(byte_level(), 256, chat_template=template)
    with pytest.raises(ChatTemplateError, match=expected):
        tokenizer.chat_prompt([{"role": "user", "content": "hi"}])
