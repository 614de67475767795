// An agent of the AI SDK, streamed, by each of its providers.

const { stepCountIs, streamText, tool } = require("ai");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = require("@ai-sdk/google");
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { z } = require("zod");

const [base, wire] = process.argv.slice(2);
const at = (version) => ({ baseURL: `${base}/${version}`, apiKey: "x" });
const MODELS = {
  chat: () => createOpenAICompatible({ name: "door", ...at("v1") })("fake"),
  responses: () => createOpenAI(at("v1")).responses("fake"),
  messages: () => createAnthropic(at("v1"))("fake"),
  gemini: () => createGoogleGenerativeAI(at("v1beta"))("fake"),
};

async function answered() {
  const result = streamText({
    model: MODELS[wire](),
    prompt: "Weather in Bonn? [tools:3] [parallel:2]",
    tools: { get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "sunny" }) },
    stopWhen: stepCountIs(8),
    maxRetries: 0,
  });
  const answer = await result.text;
  const steps = (await result.steps).length;
  if (!answer || steps !== 4) throw new Error(`${steps} steps, then ${JSON.stringify(answer)}`);
  return answer;
}

answered().then(console.log);
