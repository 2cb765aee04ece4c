"""The client: `BubbleConnection` and what it gives. Knows the protocol, the assembler and extensions, and nothing of the server."""

from __future__ import annotations

from bubble.client.answers import Extension, ProtocolInfo, Ticket
from bubble.client.backoff import Backoff
from bubble.client.connection import BubbleConnection
from bubble.client.follower import SubscriptionStatistics
from bubble.client.hearing import RunInterrupted
from bubble.client.listing import Listing
from bubble.client.message_pages import MessagePage
from bubble.client.messages import MessagesSubscription, MessagesUpdate
from bubble.client.negotiation import AssemblerProvider, Extensions
from bubble.client.outbound import AttachedFile, SentMessage
from bubble.client.runs import Run
from bubble.client.subscriptions import GrantsSubscription, ThreadSubscription
from bubble.client.tool_calls import Approval, ToolCall
from bubble.client.transport import Connector, Socket, SocketClosed

__all__ = [
    "Approval",
    "AssemblerProvider",
    "AttachedFile",
    "Backoff",
    "BubbleConnection",
    "Connector",
    "Extension",
    "Extensions",
    "GrantsSubscription",
    "Listing",
    "MessagePage",
    "MessagesSubscription",
    "MessagesUpdate",
    "ProtocolInfo",
    "Run",
    "RunInterrupted",
    "SentMessage",
    "Socket",
    "SocketClosed",
    "SubscriptionStatistics",
    "ThreadSubscription",
    "Ticket",
    "ToolCall",
]
