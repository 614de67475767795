// An agent of Google's ADK, streamed.

const { FunctionTool, Gemini, InMemoryRunner, LlmAgent, StreamingMode } = require("@google/adk");
const { z } = require("zod");

const [base] = process.argv.slice(2);
process.env.GOOGLE_GEMINI_BASE_URL = base;
const weather = new FunctionTool({
  name: "get_weather",
  description: "Weather.",
  parameters: z.object({ city: z.string() }),
  execute: () => "sunny",
});

async function answered() {
  const agent = new LlmAgent({ name: "bee", model: new Gemini({ model: "fake", apiKey: "x" }), tools: [weather] });
  const runner = new InMemoryRunner({ agent, appName: "weather" });
  const { id } = await runner.sessionService.createSession({ appName: "weather", userId: "me" });
  const newMessage = { role: "user", parts: [{ text: "Weather? [tools:3] [parallel:2]" }] };
  const asked = { userId: "me", sessionId: id, newMessage, runConfig: { streamingMode: StreamingMode.SSE } };
  let answer = "";
  for await (const event of runner.runAsync(asked)) {
    if (event.errorMessage) throw new Error(event.errorMessage);
    answer = event.content?.parts?.map((part) => part.text ?? "").join("") || answer;
  }
  if (!answer) throw new Error("no text");
  return answer;
}

answered().then(console.log);
