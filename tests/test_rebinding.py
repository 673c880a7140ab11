"""Names whose owner changes the answer between saving and use, or between two lookups (DNS rebinding), at
each place where the API takes an address: webhooks, the model and MCP servers. Nothing private is connected
to.
"""

import dataclasses
import itertools
import socket

import pytest

import database
import net
from app import create_app
from assistant import mcp
from engines import configuration
from tests.support.beginning import begin
from tests.support.client import Client
from tests.support.fake_llm import FakeLLM

PUBLIC = "93.184.215.14"
NAME = "turning.example"


class Turning:
    """A resolver with which the name's owner answers as `addresses` say, one for each lookup."""

    def __init__(self):
        self.addresses = itertools.repeat(PUBLIC)
        self.asked = 0

    def __call__(self, host, port, **options):
        if host != NAME:
            return socket.getaddrinfo(host, port, **options)
        self.asked += 1
        address = next(self.addresses)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.fixture
def turning(monkeypatch):
    resolver = Turning()
    monkeypatch.setitem(net.Guard.__init__.__kwdefaults__, "resolve", resolver)
    return resolver


@pytest.fixture
def inside():
    """A server on this machine, which nothing may reach."""
    with FakeLLM() as server:
        yield server


@pytest.fixture
def trusting(settings):
    """Settings that allow 127.0.0.2, which stands for a public address here: tests reach no other one."""
    hosts = ("127.0.0.2",)
    begin(settings)
    yield dataclasses.replace(settings, webhook_allowed_hosts=hosts, llm_allowed_hosts=hosts)
    database.close_store()


def webhook(client, settings, url):
    """Save a webhook there. What is returned calls it and returns what the log says."""
    answer = client.post("/api/webhooks", json={"url": url, "events": ["note.written"]})
    assert answer.status_code == 200, answer.json
    return lambda: client.post(f"/api/webhooks/{answer.json['id']}/test", json={}).json["problem"]


def model(client, settings, url):
    answer = client.put("/api/config/llm", json={"base_url": url, "model": "eyes", "api_key": "sk-scripted"})
    assert answer.status_code == 200, answer.json
    return lambda: client.post("/api/config/llm/test", json={}).json["message"]


def mcp_server(client, settings, url):
    answer = client.post("/api/mcp-servers", json={"id": "tools", "name": "Tools", "url": url})
    assert answer.status_code == 200, answer.json

    def call():
        with (
            mcp.Client(url, configuration.guard(settings), deadline=20) as server,
            pytest.raises(net.CallFailed) as failure,
        ):
            server.list_tools()
        return failure.value.detail

    return call


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1"])
@pytest.mark.parametrize("exit", [webhook, model, mcp_server])
def test_a_name_that_was_public_when_it_was_saved_is_not_called_when_it_is_private(
    client, settings, turning, inside, exit, private
):
    call = exit(client, settings, f"https://{NAME}:{inside.port}/v1")
    turning.addresses = itertools.repeat(private)

    assert "private address" in call()
    assert inside.connections == 0


@pytest.mark.parametrize("exit", [webhook, model, mcp_server])
def test_only_the_address_that_was_judged_is_connected_to(trusting, turning, inside, exit):
    client = Client(create_app(trusting))
    turning.addresses = itertools.repeat("127.0.0.2")
    call = exit(client, trusting, f"http://{NAME}:{inside.port}/v1")
    # Every second lookup leads to this machine: a call that looked the name up twice would reach the server.
    turning.addresses = itertools.cycle(["127.0.0.2", "127.0.0.1"])
    turning.asked = 0

    said = call()

    assert turning.asked >= 1
    assert "private" not in said
    assert inside.connections == 0
