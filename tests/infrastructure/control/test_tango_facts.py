"""What the installed release of PyTango does, as far as rules 45 and 46 of the adapter rest on it."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("tango", reason="pytango is not installed (extra `tango`)")

import tango

from tests.support.infrastructure.scripted_server import ScriptedServer


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer("tango_server") as server:
        yield server


@pytest.fixture
def proxy(server: ScriptedServer) -> Iterator[Any]:
    yield tango.DeviceProxy(f"tango://127.0.0.1:{server.ready['port']}/{server.ready['device']}#dbase=no")
    if server.process.poll() is None:
        server.tell("reset")


def reasons_of(call: Any) -> list[str]:
    """The error stack of a call that fails."""
    with pytest.raises(tango.DevFailed) as failure:
        call()
    return [error.reason for error in failure.value.args]


def follow(proxy: Any, name: str) -> tuple[list[Any], threading.Event]:
    """Collect the events of an attribute."""
    heard: list[Any] = []
    more = threading.Event()

    def receive(event: Any) -> None:
        heard.append(event)
        more.set()

    proxy.subscribe_event(name, tango.EventType.CHANGE_EVENT, receive)
    more.clear()
    return heard, more


def test_f10_a_server_without_database_serves_attributes_commands_and_the_state(
    server: ScriptedServer, proxy: Any, x: str
) -> None:
    server.tell("set", address=x, value=1.5)
    assert proxy.read_attribute(x).value == 1.5
    assert proxy.command_inout("Home", 2.0) == 2.0
    assert proxy.read_attribute("State").value == tango.DevState.ON


def test_f10_an_invalid_value_is_none_and_an_enum_an_integer_with_labels_in_its_configuration(
    server: ScriptedServer, proxy: Any, x: str
) -> None:
    server.tell("set", address=x, value=1.5, severity=3)
    invalid = proxy.read_attribute(x)
    assert (invalid.value, invalid.quality) == (None, tango.AttrQuality.ATTR_INVALID)
    server.tell("set", address="filter", value="In", labels=["Out", "In"])
    assert proxy.read_attribute("filter").value == 1
    assert list(proxy.get_attribute_config("filter").enum_labels) == ["Out", "In"]


def test_f10_errors_have_these_reasons(server: ScriptedServer, proxy: Any, x: str) -> None:
    server.tell("set", address=x, value=1.0, limits=[0.0, 4.0], pushed=False)
    server.tell("set", address="fixed", value=1.0, read_only=True)
    assert "API_AttrNotFound" in reasons_of(lambda: proxy.read_attribute("absent"))
    assert "API_WAttrOutsideLimit" in reasons_of(lambda: proxy.write_attribute(x, 5.0))
    assert "API_AttrNotWritable" in reasons_of(lambda: proxy.write_attribute("fixed", 5.0))
    assert "API_CommandNotFound" in reasons_of(lambda: proxy.command_inout("Absent"))
    assert "API_AttributePollingNotStarted" in reasons_of(
        lambda: proxy.subscribe_event(x, tango.EventType.CHANGE_EVENT, print)
    )
    with pytest.raises(TypeError):
        proxy.write_attribute(x, "text")


def test_f10_a_command_that_timed_out_still_had_its_effect(server: ScriptedServer, proxy: Any) -> None:
    server.tell("slow", name="Home", seconds=0.6)
    proxy.set_timeout_millis(200)
    stack = reasons_of(lambda: proxy.command_inout("Home", 2.0))
    assert stack[0] == "API_CorbaException"
    assert "API_DeviceTimedOut" in stack
    assert [put[1] for put in server.tell("puts")] == ["Home"]


def test_f10_pushed_changes_arrive_once_the_subscription_reached_the_server(
    server: ScriptedServer, proxy: Any, x: str
) -> None:
    server.tell("set", address=x, value=1.0)
    heard, more = follow(proxy, x)
    assert [event.attr_value.value for event in heard] == [1.0], "the present value comes first"
    give_up_at = time.monotonic() + 60
    while not more.wait(0.5):  # what is pushed before the subscription reaches the server is pushed to nobody
        assert time.monotonic() < give_up_at
        server.tell("set", address=x, value=2.0)
    assert heard[-1].attr_value.value == 2.0


@pytest.mark.soak
def test_f10_a_killed_server_fails_a_read_at_once_and_a_subscription_after_seconds() -> None:
    """It takes 7 to 19 s, on which the adapter does not rest: a shorter time would only make its pings needless."""
    with ScriptedServer("tango_server") as server:
        proxy = tango.DeviceProxy(f"tango://127.0.0.1:{server.ready['port']}/{server.ready['device']}#dbase=no")
        server.tell("set", address="x", value=1.0)
        heard, more = follow(proxy, "x")
        server.kill()
        killed_at = time.monotonic()
        assert {"API_ServerNotRunning", "API_CantConnectToDevice"} & set(reasons_of(proxy.ping))
        assert time.monotonic() - killed_at < 1
        assert more.wait(60)
        assert heard[-1].err
        assert heard[-1].errors[0].reason == "API_EventTimeout"
        assert time.monotonic() - killed_at > 3, "hence the adapter pings"
