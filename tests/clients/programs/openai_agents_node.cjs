// An agent of the OpenAI Agents SDK for Node, streamed.

const { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } = require("@openai/agents");
const { OpenAI } = require("openai");
const { z } = require("zod");

const [base, wire] = process.argv.slice(2);
setTracingDisabled(true);
setDefaultOpenAIClient(new OpenAI({ baseURL: `${base}/v1`, apiKey: "x", maxRetries: 0 }));
setOpenAIAPI(wire === "chat" ? "chat_completions" : "responses");
const weather = tool({
  name: "get_weather",
  description: "Weather of a city",
  parameters: z.object({ city: z.string() }),
  execute: async () => "sunny",
});

async function answered() {
  const agent = new Agent({ name: "asker", model: "fake", tools: [weather] });
  const result = await run(agent, "Weather in Bonn? [tools:3] [parallel:2]", { stream: true });
  await result.completed;
  if (!result.finalOutput) throw new Error("no text");
  return result.finalOutput;
}

answered().then(console.log);
