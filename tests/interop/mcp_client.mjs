// A client written with the TypeScript SDK; it prints what it saw, and ends.
// node mcp_client.mjs <folder of the SDK> <url> <headers as JSON> <procedure id>
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url, headers, procedureId] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { Client } = await import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/client/index.js")));
const { StreamableHTTPClientTransport } = await import(
  pathToFileURL(require.resolve("@modelcontextprotocol/sdk/client/streamableHttp.js"))
);

const client = new Client({ name: "interop", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: JSON.parse(headers) } }));
const tools = await client.listTools();
const called = await client.callTool({ name: "search_operations", arguments: { words: "pause the scan", limit: 1 } });
const refused = await client.callTool({ name: "get_run", arguments: { run_id: "Load step 1" } });
const progress = [];
const steps = [1, 2, 3].map((value) => ({ kind: "setpoint", address: "a", value }));
const conducted = await client.callTool(
  { name: "conduct_procedure", arguments: { procedure_id: procedureId, steps, wait: 30 } },
  undefined,
  { onprogress: ({ message }) => progress.push(message) },
);
const templates = await client.listResourceTemplates();
const looked = await client.readResource({ uri: `baton://procedures/${procedureId}/conduct` });
const prompt = await client.getPrompt({ name: "explain_refusal", arguments: { code: "RunCannotResumeError" } });
console.log(
  JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.tools.map((tool) => tool.name),
    found: called.structuredContent.operations[0].name,
    refusal: refused.isError ? refused.content[0].text : null,
    conducted: conducted.structuredContent,
    sentence: conducted.content[0].text.split("\n")[0],
    progress,
    templates: templates.resourceTemplates.map((template) => template.uriTemplate),
    looked: JSON.parse(looked.contents[0].text).status,
    prompt: prompt.messages[0].content.text,
  }),
);
await client.close();
