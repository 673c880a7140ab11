// The official TypeScript SDK of the era of handshakes, as a process: standard input has `url`, `token` and the `calls`;
// standard output gets the version of the protocol, the tools and the results.
import { readFileSync } from "node:fs";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { url, token, calls } = JSON.parse(readFileSync(0, "utf8"));
const headers = { Authorization: `Bearer ${token}` };
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
const client = new Client({ name: "test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
const version = transport.protocolVersion;
await client.close();
console.log(JSON.stringify({ version, tools: tools.map((tool) => tool.name), results }));
