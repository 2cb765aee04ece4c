"""Agents of Google's ADK with a scripted model, served over A2A as ADK does it.

`/default`; `/sse` and, over the older generation, `/older`, where the model streams; `/new`, where it streams through ADK's newer executor.

It runs in an environment of its own (`make peers`): nothing of this project is there, and no model either.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import warnings

warnings.simplefilter("ignore")

import uvicorn  # noqa: E402
from a2a.server.request_handlers import DefaultRequestHandler  # noqa: E402
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes  # noqa: E402
from a2a.server.tasks import InMemoryTaskStore  # noqa: E402
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill  # noqa: E402
from google.adk.a2a.converters.request_converter import convert_a2a_request_to_agent_run_request  # noqa: E402
from google.adk.a2a.executor.a2a_agent_executor import A2aAgentExecutor, A2aAgentExecutorConfig  # noqa: E402
from google.adk.agents import LlmAgent  # noqa: E402
from google.adk.agents.run_config import RunConfig, StreamingMode  # noqa: E402
from google.adk.models.base_llm import BaseLlm  # noqa: E402
from google.adk.models.llm_response import LlmResponse  # noqa: E402
from google.adk.runners import InMemoryRunner  # noqa: E402
from google.adk.tools.function_tool import FunctionTool  # noqa: E402
from google.adk.tools.long_running_tool import LongRunningFunctionTool  # noqa: E402
from google.genai import types  # noqa: E402
from starlette.applications import Starlette  # noqa: E402
from starlette.routing import Mount  # noqa: E402


def said(*parts, partial=None):
    return LlmResponse(content=types.Content(role="model", parts=[*parts]), partial=partial)


def text(words, thought=None):
    return types.Part(text=words, thought=thought)


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


class ScriptedModel(BaseLlm):
    """Answers as the last thing in the conversation says."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is not None:
            words = f"The tool said {sorted((last.function_response.response or {}).items())}"
            async for response in self.spoken(words, stream):
                yield response
            return
        prompt = (last.text or "").split(" ")[0]
        if prompt == "tool":
            yield said(text("Let me look. "), call("get_weather", city="Oslo", n=3))
        elif prompt == "long":
            yield said(call("approve", amount=12))
        elif prompt == "think":
            yield said(text("pondering", thought=True), text("Hi"))
        elif prompt == "raise":
            raise RuntimeError("model exploded")
        elif prompt == "slow":
            for _ in range(10_000):
                if stream:
                    yield said(text("tick "), partial=True)
                await asyncio.sleep(0.05)
        else:
            async for response in self.spoken("Hi" if prompt == "short" else "Hello streaming world", stream):
                yield response

    async def spoken(self, words, stream):
        pieces = words.split(" ")
        for at, piece in enumerate(pieces) if stream else ():
            yield said(text(piece if at + 1 == len(pieces) else f"{piece} "), partial=True)
            await asyncio.sleep(0.01)
        yield said(text(words))


def get_weather(city: str, n: int) -> dict:
    """The weather."""
    return {"temp": 4.5, "city": city}


def approve(amount: int) -> dict:
    """Asks a person."""
    return {"status": "pending", "ticket": "T-1"}


def streamed(request, part_converter):
    run = convert_a2a_request_to_agent_run_request(request, part_converter)
    run.run_config = RunConfig(streaming_mode=StreamingMode.SSE)
    return run


def agent():
    tools = [FunctionTool(get_weather), LongRunningFunctionTool(approve)]
    return LlmAgent(name="adk_agent", model=ScriptedModel(), tools=tools)


def card(url):
    return AgentCard(
        name="adk_agent",
        description="ADK",
        version="1",
        supported_interfaces=[
            AgentInterface(url=f"{url}/rpc/", protocol_binding="JSONRPC", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["s"])],
    )


def older_card(url):
    made = card(url)
    made.supported_interfaces[0].protocol_version = "0.3"
    return made


def mounted(url, config, *, older=False, new=False):
    runner = InMemoryRunner(agent=agent(), app_name="adk_agent")
    own = older_card(url) if older else card(url)
    executor = A2aAgentExecutor(runner=runner, config=config, force_new_version=new)
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=own)
    routes = [
        *create_agent_card_routes(own),
        Mount("/rpc", routes=create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=older)),
        Mount("/rest", routes=create_rest_routes(handler)),
    ]
    return Mount("/" + url.rpartition("/")[2], routes=routes)


def application(url):
    return Starlette(
        routes=[
            mounted(f"{url}/default", A2aAgentExecutorConfig()),
            mounted(f"{url}/sse", A2aAgentExecutorConfig(request_converter=streamed)),
            mounted(f"{url}/new", A2aAgentExecutorConfig(request_converter=streamed), new=True),
            mounted(f"{url}/older", A2aAgentExecutorConfig(request_converter=streamed), older=True),
        ]
    )


def stop_with_stdin():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    threading.Thread(target=stop_with_stdin, daemon=True).start()
    server = uvicorn.Server(uvicorn.Config(application(url), log_level="error", timeout_graceful_shutdown=1))
    print(json.dumps({"url": url}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(sockets=[listening]))


main()
