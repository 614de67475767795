// A tool loop with the openai package for Node: Chat streamed by its own runner, Responses whole, by hand.

const { OpenAI } = require("openai");

const [base, wire] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "x", maxRetries: 0 });
const TASK = "Weather in Bonn? [tools:3] [parallel:2]";
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function byChat() {
  const tool = { name: "get_weather", parameters: SCHEMA, parse: JSON.parse, function: () => "sunny" };
  const runner = client.chat.completions.runTools({
    model: "fake",
    stream: true,
    messages: [{ role: "user", content: TASK }],
    tools: [{ type: "function", function: tool }],
  });
  return runner.finalContent();
}

async function byResponses() {
  const tools = [{ type: "function", name: "get_weather", parameters: SCHEMA, strict: false }];
  const input = [{ role: "user", content: TASK }];
  for (;;) {
    const response = await client.responses.create({ model: "fake", input, tools, store: false });
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return response.output_text;
    input.push(...response.output);
    input.push(...calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "sunny" })));
  }
}

(wire === "chat" ? byChat() : byResponses()).then((answer) => {
  if (!answer) throw new Error("no text");
  console.log(answer);
});
