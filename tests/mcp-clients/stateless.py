"""The official Python SDK of the stateless era, as a process: standard input has `url`, `token`, the `calls`
and the `era`; standard output gets the version of the protocol, the tools and the results.
"""

import asyncio
import json
import sys

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def run(url, token, calls, era):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode="legacy" if era == "legacy" else "auto") as client:
            tools = (await client.list_tools()).tools
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            return {
                "version": client.protocol_version,
                "tools": [tool.name for tool in tools],
                "results": [result.model_dump(mode="json", by_alias=True) for result in results],
            }


print(json.dumps(asyncio.run(run(**json.load(sys.stdin)))))
