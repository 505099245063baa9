// `node openai.mjs URL MODEL`: what the official JavaScript client makes of an endpoint, as JSON.
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 120_000 });
const messages = [{ role: "user", content: "Count from one to one hundred in words." }];
// Without chance, and longer than asked for: so the length of the answer is known.
const ask = { model, messages, max_tokens: 8, temperature: 0 };

// Do what must fail, and return how the client tells of it.
async function fault(action) {
  try {
    await action();
  } catch (error) {
    if (error instanceof OpenAI.APIError) {
      return { name: error.constructor.name, status: error.status, said: Boolean(error.message) };
    }
    throw error;
  }
  return { name: "none" };
}

const models = [];
for await (const each of client.models.list()) models.push(each.id);

const chat = await client.chat.completions.create(ask);

const chunks = [];
const asked = { ...ask, stream: true, stream_options: { include_usage: true } };
for await (const chunk of await client.chat.completions.create(asked)) chunks.push(chunk);

const long = { ...ask, messages: [{ role: "user", content: "word ".repeat(6000) }] };
console.log(
  JSON.stringify({
    models,
    chat: {
      role: chat.choices[0].message.role,
      hasText: Boolean(chat.choices[0].message.content),
      finish: chat.choices[0].finish_reason,
      tokens: chat.usage?.completion_tokens,
    },
    stream: {
      severalChunks: chunks.filter((chunk) => chunk.choices[0]?.delta.content).length > 1,
      finish: chunks.filter((chunk) => chunk.choices.length).at(-1).choices[0].finish_reason,
      tokens: chunks.at(-1).usage?.completion_tokens,
    },
    tooLong: await fault(() => client.chat.completions.create(long)),
    malformed: await fault(() => client.chat.completions.create({ ...ask, messages: "hello" })),
    noSuchPath: await fault(() => client.fineTuning.jobs.list()),
  }),
);
