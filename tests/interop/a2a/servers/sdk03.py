"""The official A2A server of the older generation, with an agent that does what the first word of the prompt says.

It runs in an environment of its own (`make peers`): nothing of this project is there.
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

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps.jsonrpc.starlette_app import A2AStarletteApplication
from a2a.server.apps.rest.fastapi_app import A2ARESTFastAPIApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Part,
    Task,
    TaskState,
    TaskStatus,
    TextPart,
)
from starlette.applications import Starlette
from starlette.routing import Mount


def text(words, **metadata):
    return Part(root=TextPart(text=words, metadata=metadata or None))


class Executor(AgentExecutor):
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is not None:
            await updater.start_work()
            await self.say(updater, f"Told: {self.told(context)}")
            await updater.complete()
            return
        submitted = Task(
            id=context.task_id,
            context_id=context.context_id,
            status=TaskStatus(state=TaskState.submitted),
            history=[context.message],
        )
        await event_queue.enqueue_event(submitted)
        await updater.start_work()
        prompt = context.get_user_input()
        script = getattr(self, f"play_{prompt.split()[0]}", self.play_echo)
        await script(updater, context)

    async def say(self, updater, words):
        pieces = [f"{word} " for word in words.split(" ")[:-1]] + [words.split(" ")[-1]]
        for at, piece in enumerate(pieces):
            last = at + 1 == len(pieces)
            await updater.add_artifact([text(piece)], artifact_id="answer", append=at > 0, last_chunk=last)

    def told(self, context):
        data = [part.root.data for part in context.message.parts if part.root.kind == "data"]
        return json.dumps(data[0]["response"], sort_keys=True) if data else context.get_user_input()

    async def play_echo(self, updater, context):
        files = [part.root.file for part in context.message.parts if part.root.kind == "file"]
        told = "".join(f" ({file.name}: {getattr(file, 'bytes', None) or file.uri})" for file in files)
        await self.say(updater, f"You said: {context.get_user_input()}{told}")
        await updater.complete()

    async def play_repeat(self, updater, context):
        await self.say(updater, "Three times the same")
        await updater.add_artifact([text("Three times the same")], artifact_id="again", last_chunk=True)
        await updater.complete(updater.new_agent_message([text("Three times the same")]))

    async def play_tool(self, updater, context):
        call = DataPart(
            data={"id": "call-1", "name": "approve", "args": {"amount": 12}},
            metadata={"adk_type": "function_call", "adk_is_long_running": True},
        )
        await updater.requires_input(updater.new_agent_message([text("May I?"), Part(root=call)]))

    async def play_long(self, updater, context):
        await updater.add_artifact([text("Ticking")], artifact_id="answer")
        while True:
            await asyncio.sleep(0.05)
            await updater.add_artifact([text(" tick")], artifact_id="answer", append=True)

    async def play_fail(self, updater, context):
        await updater.failed(updater.new_agent_message([text("No quota")]))

    async def play_raise(self, updater, context):
        raise RuntimeError("boom")

    async def play_file(self, updater, context):
        whole = FilePart(file=FileWithBytes(bytes="iVBORyBmYWtl", mime_type="image/png", name="p.png"))
        elsewhere = FilePart(file=FileWithUri(uri="https://f.test/d.pdf", mime_type="application/pdf", name="d.pdf"))
        await updater.add_artifact([Part(root=whole), Part(root=elsewhere)], artifact_id="files")
        await updater.complete()

    async def play_think(self, updater, context):
        await updater.add_artifact([text("Hm.", adk_thought=True), text("Aha.")], artifact_id="a", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        print(json.dumps({"cancelled": context.task_id}), flush=True)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def card(url, transport):
    return AgentCard(
        name="0.3",
        description="0.3",
        url=url,
        version="1",
        protocol_version="0.3.0",
        preferred_transport=transport,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[],
    )


def application(url):
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
    rpc = A2AStarletteApplication(agent_card=card(f"{url}/rpc/", "JSONRPC"), http_handler=handler).build(rpc_url="/")
    rest = A2ARESTFastAPIApplication(agent_card=card(f"{url}/rest", "HTTP+JSON"), http_handler=handler).build()
    return Starlette(routes=[Mount("/rpc", rpc), Mount("/rest", rest)])


def stop_with_stdin():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # so that the first request waits, should it come before the server is ready
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    threading.Thread(target=stop_with_stdin, daemon=True).start()
    server = uvicorn.Server(uvicorn.Config(application(url), log_level="error", timeout_graceful_shutdown=1))
    print(json.dumps({"url": url}), flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(sockets=[listening]))


main()
