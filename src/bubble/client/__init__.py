"""The client: `BubbleConnection` and what it gives. Knows the protocol and nothing of the server."""

from __future__ import annotations

from bubble.client.answers import Extension, ProtocolInfo, Ticket
from bubble.client.backoff import Backoff
from bubble.client.connection import BubbleConnection
from bubble.client.follower import SubscriptionStatistics
from bubble.client.hearing import RunInterrupted
from bubble.client.listing import Listing
from bubble.client.runs import Run
from bubble.client.subscriptions import GrantsSubscription, ThreadSubscription
from bubble.client.tool_calls import Approval, ToolCall
from bubble.client.transport import Connector, Socket, SocketClosed

__all__ = [
    "Approval",
    "Backoff",
    "BubbleConnection",
    "Connector",
    "Extension",
    "GrantsSubscription",
    "Listing",
    "ProtocolInfo",
    "Run",
    "RunInterrupted",
    "Socket",
    "SocketClosed",
    "SubscriptionStatistics",
    "ThreadSubscription",
    "Ticket",
    "ToolCall",
]
