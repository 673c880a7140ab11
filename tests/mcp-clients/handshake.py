"""The official Python SDK of the era of handshakes, as a process: standard input has `url`, `token` and the
`calls`; standard output gets the version of the protocol, the tools and the results.
"""

import asyncio
import json
import sys

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def run(url, token, calls, **_):
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        results = [await session.call_tool(name, arguments) for name, arguments in calls]
        return {
            "version": begun.protocolVersion,
            "tools": [tool.name for tool in tools],
            "results": [result.model_dump(mode="json", by_alias=True) for result in results],
        }


print(json.dumps(asyncio.run(run(**json.load(sys.stdin)))))
