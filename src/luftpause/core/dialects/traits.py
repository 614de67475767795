"""What is in a request, whatever its dialect: pictures and fenced code. Looks at bytes, parses nothing.

It is a guess by which an unknown model's turn is routed, and is made nowhere else.
"""

import re
from typing import Final

from luftpause.core.model.turns import Traits

_IMAGE: Final = re.compile(
    rb'"type"\s*:\s*"(?:image_url|input_image|image)"'
    rb'|"(?:mime_type|mimeType|media_type)"\s*:\s*"image/'
)
"""Chat Completions, Responses, Messages, Gemini."""
_FENCE: Final = b"```"
_WHOLE: Final = 100


def traits_of(body: bytes) -> Traits:
    """Return what is in a request body."""
    return Traits(images=_IMAGE.search(body) is not None, code_share=_code_share(body))


def _code_share(body: bytes) -> int:
    """Return how many in a hundred bytes stand between fences; one that is never closed lasts to the end."""
    if not body:
        return 0
    pieces = body.split(_FENCE)
    return sum(map(len, pieces[1::2])) * _WHOLE // len(body)
