"""A chat with the google-genai package whose tool loop is the package's own, streamed."""

import sys

from google import genai
from google.genai import types


def get_weather(city: str) -> str:
    """Return the weather."""
    return f"sunny in {city}"


client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=sys.argv[1]))
chat = client.chats.create(model="fake", config=types.GenerateContentConfig(tools=[get_weather]))
pieces = [piece.text or "" for piece in chat.send_message_stream("Weather in Bonn? [tools:2] [parallel:2]")]
assert len(pieces) > 5, "no stream"
assert chat.send_message("And in Rome? [tools:1]").text, "no text"
refused = None
try:
    client.models.generate_content(model="nobody", contents="hi")
except genai.errors.ClientError as error:
    refused = (error.code, error.status)
assert refused == (404, "NOT_FOUND"), refused
print("".join(pieces))
