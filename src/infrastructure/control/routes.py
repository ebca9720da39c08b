"""The configured control systems behind one port: an address belongs to the route with the longest matching prefix."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from baton.application import control as port
from baton.application.control import Control, ControlLimits, Fence, Reading, limits_of
from baton.application.plant import SIMULATOR_ONLY, ControlRoute, Substrate
from baton.application.settings import Settings
from baton.domain.step.results import route_of
from baton.infrastructure.control.simulator import simulated_plant
from baton.infrastructure.plugins import CONTROL

if TYPE_CHECKING:
    from baton.infrastructure.control.channel_access import ChannelAccessClient


class AdapterMissingError(Exception):
    """A route names a control system whose library is not installed, or whose devices are not named."""


class RoutedControl:
    """Several control systems as one; a write to a read-only route is refused before anything is sent."""

    def __init__(self, routes: Sequence[ControlRoute], adapters: Mapping[str, Control], writes_enabled: bool = True) -> None:
        self._routes = routes
        self._adapters = adapters
        self._writes_enabled = writes_enabled

    async def read(self, address: str) -> Reading:
        return await self._adapters[self._route(address).substrate].read(address)

    async def write(
        self, address: str, value: object, wait: bool = True, timeout: float = port.WRITE_TIMEOUT, fence: Fence | None = None
    ) -> None:
        route = self._route(address)
        if not self._writes_enabled:
            raise port.ControlWritesDisabledError(f"{address} was not written: CONTROL_WRITES_ENABLED is false here.")
        if route.read_only:
            raise port.ControlWritesDisabledError(f"{address} was not written: its route {route.prefix!r} is read-only.")
        await self._adapters[route.substrate].write(address, value, wait, timeout, fence)

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        return self._adapters[self._route(address).substrate].subscribe(address)

    async def limits(self, address: str) -> ControlLimits | None:
        return await limits_of(self._adapters[self._route(address).substrate], address)

    async def close(self) -> None:
        async with AsyncExitStack() as closing:
            for adapter in self._adapters.values():
                closing.push_async_callback(adapter.close)

    def _route(self, address: str) -> ControlRoute:
        if (route := route_of(address, self._routes)) is None:
            raise port.NoAdapterForAddressError(f"No route of CONTROL_ROUTES leads to {address}.")
        return route


def configured_control(settings: Settings) -> Control:
    """Return the control systems that the settings name, or the simulator when they name none."""
    routes = settings.control_routes or SIMULATOR_ONLY
    adapters = {substrate: make_adapter(substrate, settings) for substrate in {route.substrate for route in routes}}
    return RoutedControl(routes, adapters, writes_enabled=settings.control_writes_enabled)


@asynccontextmanager
async def open_control(settings: Settings) -> AsyncIterator[Control]:
    control = configured_control(settings)
    try:
        yield control
    finally:
        await control.close()


def make_adapter(substrate: str, settings: Settings) -> Control:
    """Return the adapter of one control system; its library is imported only here, when a route names it."""
    match substrate:
        case Substrate.IN_MEMORY:
            return simulated_plant(settings)
        case Substrate.EPICS_CA:
            from baton.infrastructure.control.channel_access import ChannelAccess

            return ChannelAccess(channel_access_client())
        case Substrate.EPICS_PVA:
            try:
                from baton.infrastructure.control.pv_access import PvAccess
            except ImportError as error:
                missing = "CONTROL_ROUTES names epics_pva, which needs the library p4p; install the extra `epics`."
                raise AdapterMissingError(missing) from error
            return PvAccess()
        case Substrate.TANGO:
            try:
                from baton.infrastructure.control.tango import TangoControl
            except ImportError as error:
                missing = "CONTROL_ROUTES names tango, which needs the library pytango; install the extra `tango`."
                raise AdapterMissingError(missing) from error
            return TangoControl()
        case Substrate.OPHYD:
            try:
                from baton.infrastructure.control.ophyd import OphydControl
                from baton.infrastructure.control.ophyd_devices import load_devices
            except ImportError as error:
                missing = "CONTROL_ROUTES names ophyd, which needs the library ophyd-async; install the extra `ophyd`."
                raise AdapterMissingError(missing) from error
            if not (source := settings.ophyd_devices):
                unnamed = "CONTROL_ROUTES names ophyd; say in OPHYD_DEVICES which devices: module:factory, or a happi file."
                raise AdapterMissingError(unnamed)
            return OphydControl(partial(load_devices, source))
        case name:
            return CONTROL.make(name)


def channel_access_client() -> "ChannelAccessClient":
    """Return the compiled client of Channel Access where it is installed, else the one in pure Python."""
    try:
        from baton.infrastructure.control.aioca_client import AiocaClient
    except ImportError:
        from baton.infrastructure.control.caproto_client import CaprotoClient

        return CaprotoClient()
    return AiocaClient()
