// A LangChain agent that calls another one as a tool, which calls a function: whole, then streamed.

const { createAgent, tool } = require("langchain");
const { ChatAnthropic } = require("@langchain/anthropic");
const { ChatGoogleGenerativeAI } = require("@langchain/google-genai");
const { ChatOpenAI } = require("@langchain/openai");
const { z } = require("zod");

const [base, wire] = process.argv.slice(2);
const HOW = { model: "fake", apiKey: "x", maxRetries: 0 };
const AT = { configuration: { baseURL: `${base}/v1` } };
const MODELS = {
  chat: () => new ChatOpenAI({ ...HOW, ...AT }),
  responses: () => new ChatOpenAI({ ...HOW, ...AT, useResponsesApi: true }),
  messages: () => new ChatAnthropic({ ...HOW, anthropicApiUrl: base }),
  gemini: () => new ChatGoogleGenerativeAI({ ...HOW, baseUrl: base }),
};

const model = MODELS[wire]();
const getWeather = tool(async () => "sunny", {
  name: "get_weather",
  description: "Return the weather.",
  schema: z.object({ city: z.string() }),
});
const inner = createAgent({ model, tools: [getWeather] });

async function told(question) {
  const { messages } = await inner.invoke({ messages: [{ role: "user", content: question }] });
  return messages.at(-1).text;
}

const ask = tool(({ question }) => told(question), {
  name: "ask",
  description: "Ask somebody.",
  schema: z.object({ question: z.string() }),
});

async function answered() {
  const outer = createAgent({ model, tools: [ask] });
  const messages = [{ role: "user", content: "Weather? [tools:1] [arg:question=In Bonn? {tools:2}]" }];
  const texts = [];
  for await (const [piece] of await outer.stream({ messages }, { streamMode: "messages" })) texts.push(piece.text);
  const whole = await told("In Rome? [tools:2]");
  if (!texts.join("") || !whole) throw new Error("no text");
  return whole;
}

answered().then(console.log);
