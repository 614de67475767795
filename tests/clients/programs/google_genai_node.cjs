// A tool loop with Google's package for Node, streamed.

const { GoogleGenAI, Type } = require("@google/genai");

const [base] = process.argv.slice(2);
const client = new GoogleGenAI({ apiKey: "x", httpOptions: { baseUrl: base } });
const SCHEMA = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ["city"] };

async function answered() {
  const config = { tools: [{ functionDeclarations: [{ name: "get_weather", parameters: SCHEMA }] }] };
  const contents = [{ role: "user", parts: [{ text: "Weather in Bonn? [tools:3] [parallel:2]" }] }];
  for (;;) {
    const parts = [];
    for await (const chunk of await client.models.generateContentStream({ model: "fake", contents, config })) {
      parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    }
    const calls = parts.flatMap((part) => part.functionCall ?? []);
    if (!calls.length) return parts.map((part) => part.text).join("");
    contents.push({ role: "model", parts });
    const results = calls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: "sunny" } } }));
    contents.push({ role: "user", parts: results });
  }
}

answered().then((answer) => {
  if (!answer) throw new Error("no text");
  console.log(answer);
});
