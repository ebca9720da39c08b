"""Subscriptions: an agent is notified of a changed resource when the log has an event about it. Over HTTP the answer to
`subscriptions/listen` is the stream of notifications; on standard streams `resources/subscribe` is served too."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from typing import Any

import mcp_types
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification

from baton.api.authentication import is_expired
from baton.api.mcp.resources import Resources, WatchedResource
from baton.api.streams import MAX_ROWS, AppendListener, OpenStreams, StreamIntervals
from baton.application.caller import Caller
from baton.application.ports import Bookmark
from baton.application.queries import Feed

MOST_WATCHED = 100
NOTHING_NAMED = (
    "Name the resources to watch in resourceSubscriptions; the lists of tools, prompts and templates do not change by "
    "themselves."
)
TOO_MANY = f"One subscription watches {MOST_WATCHED} resources at most; open another for the rest."
Context = ServerRequestContext[Any, Any]


class Subscriptions:
    """Follows the log for those who wait for changes of resources."""

    def __init__(self, resources: Resources, feed: Feed, listener: AppendListener, streams: OpenStreams) -> None:
        self.resources = resources
        self._feed = feed
        self._listener = listener
        self._streams = streams
        self._intervals = StreamIntervals()

    async def listen(
        self, context: Context, addresses: Collection[str], caller: Caller
    ) -> mcp_types.SubscriptionsListenResult:
        """Acknowledge a subscription, and tell of each change until the client leaves, may read no longer, or the service
        stops."""
        watched = await self.admit(addresses, caller)
        number: dict[str, object] = {SUBSCRIPTION_ID_META_KEY: context.request_id}
        honored = mcp_types.SubscriptionFilter(resource_subscriptions=list(watched))
        params = mcp_types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=number)
        acknowledged = mcp_types.SubscriptionsAcknowledgedNotification(params=params)
        granted = bool(await self.resources.service.authorizer.permitted_commands(caller))
        with self._streams.count_open(caller, granted=granted):
            bookmark = await self._end_of_log()
            await context.session.send_notification(acknowledged, related_request_id=context.request_id)
            async for address in self._changes(watched, caller, bookmark):
                told = event_to_notification(ResourceUpdated(uri=address), number)
                await context.session.send_notification(told, related_request_id=context.request_id)
        return mcp_types.SubscriptionsListenResult(_meta=number)

    async def admit(self, addresses: Collection[str], caller: Caller) -> dict[str, WatchedResource]:
        """Return the resources at these addresses; each is read once, so that a caller who may not read it is refused."""
        if not addresses:
            raise MCPError(mcp_types.INVALID_PARAMS, NOTHING_NAMED)
        if len(addresses) > MOST_WATCHED:
            raise MCPError(mcp_types.INVALID_PARAMS, TOO_MANY)
        watched = {address: self.resources.resolve(address) for address in addresses}
        for resource in watched.values():
            await self.resources.read(resource, caller)
        return watched

    async def follow(self, watched: Mapping[str, WatchedResource], session: Any, caller: Caller) -> None:
        """Tell a session of each change of what is watched, which may become more or less meanwhile."""
        async for address in self._changes(watched, caller, await self._end_of_log()):
            await session.send_resource_updated(address)

    async def _changes(
        self, watched: Mapping[str, WatchedResource], caller: Caller, bookmark: Bookmark
    ) -> AsyncIterator[str]:
        """Yield the address of a resource whenever events that may change it were recorded, once for events read at once."""
        checked_at, stopping = time.monotonic(), self.resources.service.stopping
        while not stopping.is_set() and not is_expired(caller):
            async with self._streams.reading:
                rows = await self._feed.behind(bookmark, MAX_ROWS)
                if time.monotonic() - checked_at >= self._intervals.sight:
                    checked_at = time.monotonic()
                    if not await self._may_still_read(watched, caller):
                        return
            if not rows:
                await self._listener.wait(1.0)
                continue
            bookmark = Bookmark(rows[-1].transaction_id, rows[-1].position)
            for address, resource in list(watched.items()):
                if any(resource.changes_with(row) for row in rows):
                    yield address

    async def _may_still_read(self, watched: Mapping[str, WatchedResource], caller: Caller) -> bool:
        permitted = await self.resources.service.authorizer.permitted_commands(caller)
        return {resource.operation.command_name for resource in watched.values()} <= permitted

    async def _end_of_log(self) -> Bookmark:
        return await self._feed.start(await self._feed.store.last_position())


class SessionSubscriptions:
    """The resources that the one client on standard streams has subscribed to, before the protocol had `listen`."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._watched: dict[str, WatchedResource] = {}
        self._following: asyncio.Task[None] | None = None

    async def subscribe(self, context: Context, address: str, caller: Caller) -> None:
        """Tell the client of changes of this resource from now on."""
        if address not in self._watched and len(self._watched) >= MOST_WATCHED:
            raise MCPError(mcp_types.INVALID_PARAMS, TOO_MANY)
        self._watched |= await self._subscriptions.admit([address], caller)
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._subscriptions.follow(self._watched, context.session, caller))

    def unsubscribe(self, address: str) -> None:
        """Tell the client no more of this resource."""
        self._watched.pop(address, None)

    async def aclose(self) -> None:
        """Stop following the log."""
        if self._following is not None:
            self._following.cancel()
            with suppress(asyncio.CancelledError):
                await self._following
