"""What is found out about a bot's session by reading back in the log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from bubble.protocol.events import MessagePart, SequencedEvent
from bubble.protocol.resources import Principal, Run
from bubble.server.messages.glances import glance
from bubble.server.messages.reading import ThreadLog
from bubble.server.watching.session import Aside, BotSession, Failure, OpenRun, failure_of
from bubble.watch.frames import AgentState, BoxState

__all__ = ["know_runs", "past_asides", "read_session"]

_LOOK_BACK: Final = 256
_PAGE: Final = 1_000
_PARTICIPANTS: Final = b'"type":"participant_'
_UNDECIDED: Final = Failure("", "")


async def read_session(log: ThreadLog, bot: Principal, *, head: int) -> BotSession:
    """The session as it is at `head`. What the bot said about it is all native; of its runs the store knows which are open."""
    session = BotSession(bot, log.thread_id)
    async for texts in log.natives(1, head):
        session.read(texts)
    async for texts in log.containing(_PARTICIPANTS, 1, head):
        session.read([text for text in texts if glance(text).run_id is None])
    for run in await _open_runs(log, bot.principal_id):
        if run.started_seq <= head:
            failure = await _failure_before(log, run, min(run.last_seq, head) + 1)
            session.runs[run.run_id] = OpenRun.of(run, failure=failure)
    return session


async def know_runs(session: BotSession, log: ThreadLog, texts: Sequence[bytes]) -> None:
    """Tells the session of those of its bot's runs that end in `texts`, which follow what it has read, and which it does not know yet."""
    glances = [glance(text) for text in texts]
    started = {seen.run_id for seen in glances if seen.starts}
    ended = {seen.run_id for seen in glances if seen.finishes and seen.run_id is not None}
    unknown: Collection[str] = ended - started - session.runs.keys()
    first = glances[0].seq if glances else 1
    for run in (await log.runs(unknown)).values():
        if run.principal_id == session.bot_id:
            session.runs[run.run_id] = OpenRun.of(run, failure=await _failure_before(log, run, first))


async def past_asides(log: ThreadLog, bot: Principal, texts: Sequence[bytes]) -> list[Aside]:
    """What was told beside a stretch of the log. How things stand is not in it: that is told to everybody when they come."""
    session = BotSession(bot, log.thread_id)
    await know_runs(session, log, texts)
    return [aside for aside in session.read(texts) if not isinstance(aside.frame, AgentState | BoxState)]


async def _open_runs(log: ThreadLog, bot_id: str) -> list[Run]:
    runs: list[Run] = []
    after: str | None = None
    while True:
        page = await log.store.list_runs(log.thread_id, state="open", principal_id=bot_id, after=after, limit=_PAGE)
        runs += page.runs
        after = page.next_after
        if after is None:
            return runs


async def _failure_before(log: ThreadLog, run: Run, seq: int) -> Failure | None:
    """The run's last chunk before the event `seq` that says how it stands, if that is an error."""
    while seq > run.started_seq:
        first = max(run.started_seq, seq - _LOOK_BACK)
        failure: Failure | None = _UNDECIDED
        for text in await log.texts(first, seq - 1):
            if glance(text).run_id == run.run_id:
                failure = _after(text, run, failure)
        if failure is not _UNDECIDED:
            return failure
        seq = first
    return None


def _after(text: bytes, run: Run, failure: Failure | None) -> Failure | None:
    event = SequencedEvent.from_stored(text).event
    if isinstance(event, MessagePart) and event.principal_id == run.principal_id:
        return failure_of(event, before=failure)
    return failure
