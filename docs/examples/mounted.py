"""An application of your own with Bubble in it, at one origin."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from bubble import Settings, create_app

bubble = create_app(Settings(public_url="http://127.0.0.1:8001/bubble", data="mounted"))


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with bubble:
        # Whoever reads this link first is the administrator: print it where you alone look.
        print(f"log in: {await bubble.login_url()}", flush=True)
        yield


async def page(request: Request) -> HTMLResponse:
    return HTMLResponse("<!doctype html><title>Mine</title><ol id='events'></ol>")


app = Starlette(routes=[Route("/", page), Mount("/bubble", app=bubble)], lifespan=lifespan)
