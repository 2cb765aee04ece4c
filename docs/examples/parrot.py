from collections.abc import AsyncGenerator

from bubble.amphibian import FunctionAgent, Turn, host


async def answer(turn: Turn) -> AsyncGenerator[str, None]:
    yield "You said: "
    for word in turn.text.split():
        yield f"{word} "


if __name__ == "__main__":
    host(FunctionAgent(answer), name="parrot", config="parrot.toml")
