// An agent of Genkit, streamed.

const { genkit, z } = require("genkit");
const { openAICompatible } = require("@genkit-ai/compat-oai");
const { googleAI } = require("@genkit-ai/google-genai");

const [base, wire] = process.argv.slice(2);
const isGemini = wire === "gemini";
const ai = genkit({
  plugins: isGemini
    ? [googleAI({ apiKey: "x", baseUrl: base })]
    : [openAICompatible({ name: "door", apiKey: "x", baseURL: `${base}/v1` })],
});
const inputSchema = z.object({ city: z.string() });
const weather = { name: "get_weather", description: "Weather.", inputSchema, outputSchema: z.string() };

async function answered() {
  const { stream, response } = ai.generateStream({
    model: isGemini ? googleAI.model("fake") : "door/fake",
    prompt: "Weather? [tools:3] [parallel:2]",
    tools: [ai.defineTool(weather, async () => "sunny")],
  });
  let answer = "";
  for await (const chunk of stream) answer += chunk.text;
  if (!answer || !(await response).text) throw new Error(`no text: ${answer}`);
  return answer;
}

answered().then(console.log);
