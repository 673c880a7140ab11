// The official TypeScript SDK of the stateless era, as a process: standard input has `url`, `token`, the `calls` and the
// `era`; standard output gets the version of the protocol, the tools and the results.
import { readFileSync } from "node:fs";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const { url, token, calls, era } = JSON.parse(readFileSync(0, "utf8"));
const headers = { Authorization: `Bearer ${token}` };
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: era } });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, tools: tools.map((tool) => tool.name), results }));
