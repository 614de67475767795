// A tool loop with the Anthropic package for Node, streamed.

const { Anthropic } = require("@anthropic-ai/sdk");

const [base] = process.argv.slice(2);
const client = new Anthropic({ baseURL: base, apiKey: "x", maxRetries: 0 });
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function answered() {
  const tools = [{ name: "get_weather", input_schema: SCHEMA }];
  const messages = [{ role: "user", content: "Weather in Bonn? [tools:3] [parallel:2]" }];
  for (;;) {
    const message = await client.messages.stream({ model: "fake", max_tokens: 200, messages, tools }).finalMessage();
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return message.content[0].text;
    messages.push({ role: "assistant", content: message.content });
    const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: "sunny" }));
    messages.push({ role: "user", content: results });
  }
}

answered().then((answer) => {
  if (!answer) throw new Error("no text");
  console.log(answer);
});
