"""A page of another origin in a real browser: whatever it tries, nothing is read and nothing changes on the record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import uvicorn
from playwright.async_api import Browser

from tests.support.api.module_service import running_module_service
from tests.support.console.browser import IN_A_BROWSER, TIMEOUT_MILLISECONDS
from tests.support.waiting import until

pytestmark = IN_A_BROWSER
ATTACKS = """
async (service) => {
  const zone = JSON.stringify({name: "Eve"});
  const attempt = async (name, url, options) => {
    try {
      const answer = await fetch(url, options);
      return [name, answer.type, answer.type === "opaque" ? "" : await answer.text()];
    } catch (error) { return [name, "failed", ""]; }
  };
  const frame = JSON.stringify({jsonrpc: "2.0", id: 1, method: "tools/call",
    params: {name: "define_zone", arguments: {name: "Eve"}}});
  return await Promise.all([
    attempt("plain", service + "/zones", {method: "POST", body: zone, headers: {"Content-Type": "text/plain"}}),
    attempt("no-cors", service + "/zones", {method: "POST", body: zone, mode: "no-cors"}),
    attempt("no type", service + "/zones", {method: "POST", body: new Blob([zone]), mode: "no-cors"}),
    attempt("json", service + "/zones", {method: "POST", body: zone, headers: {"Content-Type": "application/json"}}),
    attempt("beaconed", service + "/zones", {method: "POST", body: zone, mode: "no-cors", keepalive: true}),
    attempt("mcp", service + "/mcp", {method: "POST", body: frame, mode: "no-cors"}),
    attempt("read", service + "/zones", {}),
    attempt("read opaquely", service + "/zones", {mode: "no-cors"}),
  ]);
}
"""
PAGE = b"""<!doctype html><title>Elsewhere</title>
<form method="post" enctype="text/plain" action="%b/zones"><input name='{"name": "Eve", "x' value='": 1}'></form>"""


@asynccontextmanager
async def foreign_page(service: str) -> AsyncIterator[str]:
    """A page of another port of this machine."""

    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": PAGE % service.encode()})

    server = uvicorn.Server(uvicorn.Config(page, port=0, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def events(database_url: str) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT event_id FROM events ORDER BY position").fetchall()


async def test_a_page_of_another_origin_reads_nothing_and_changes_nothing(database_url: str, browser: Browser) -> None:
    with running_module_service(database_url, projecting=False) as service:
        service.run(service.api.create("/zones", {"name": "Secret hall"}))
        before = events(database_url)
        for url in (service.api.base_url, service.api.base_url.replace("127.0.0.1", "localhost")):
            async with foreign_page(url) as page_url, await browser.new_context() as context:
                page = await context.new_page()
                page.set_default_timeout(TIMEOUT_MILLISECONDS)
                await page.goto(page_url)
                tried = await page.evaluate(ATTACKS, url)
                assert len(tried) == 8
                assert not [attempt for attempt in tried if attempt[2]], tried
                async with page.expect_navigation() as going:
                    await page.evaluate("document.forms[0].submit()")
                answer = await going.value
                assert answer is not None
                assert answer.status == 403
        assert events(database_url) == before
