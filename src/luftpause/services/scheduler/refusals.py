"""Refusals of the scheduler's HTTP routes, in OpenAI's shape as those of the LLM door."""

from math import ceil

from starlette.responses import Response

from luftpause.core.dialects.failures import Failure, openai_error


def refusal(failure: Failure) -> Response:
    """Return the answer that refuses, with a Retry-After of whole seconds where it says when to ask again."""
    later = {} if failure.retry_after_s is None else {"retry-after": str(max(1, ceil(failure.retry_after_s)))}
    return Response(openai_error(failure), failure.status, headers=later, media_type="application/json")
