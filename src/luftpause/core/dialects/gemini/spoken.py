"""What is said in a Gemini request, to know the conversation again by where its client echoes no ids."""

from collections.abc import Iterator

import msgspec

from luftpause.core.dialects.gemini.request import Content, Request
from luftpause.core.dialects.said import Utterance


def utterances(request: Request) -> Iterator[Utterance]:
    """Return the messages with their texts and results; thoughts are not repeated by every client."""
    if request.system_instruction is not None:
        yield Utterance("system", _text(request.system_instruction))
    for content in request.contents:
        yield Utterance("assistant" if content.role == "model" else "user", _text(content))


def _text(content: Content) -> str:
    texts: list[str] = []
    for part in content.parts or ():
        if part.function_response is not None:
            texts.append(msgspec.json.encode(part.function_response.response).decode())
        elif part.text and not part.thought:
            texts.append(part.text)
    return "".join(texts)
