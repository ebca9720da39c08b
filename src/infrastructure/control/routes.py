"""Which control system an address belongs to: the adapter of the longest prefix it begins with."""

from collections.abc import AsyncGenerator, Mapping

from application.control import Control, NoAdapterForAddressError, Reading
from application.settings import Settings, Substrate
from infrastructure.control.simulator import Simulator


class RoutedControl:
    """Several control systems as one."""

    def __init__(self, adapters: Mapping[str, Control]) -> None:
        self._adapters = dict(sorted(adapters.items(), key=lambda route: len(route[0]), reverse=True))

    async def read(self, address: str) -> Reading:
        return await self._adapter(address).read(address)

    def subscribe(self, address: str) -> AsyncGenerator[Reading, None]:
        return self._adapter(address).subscribe(address)

    def _adapter(self, address: str) -> Control:
        for prefix, adapter in self._adapters.items():
            if address.startswith(prefix):
                return adapter
        raise NoAdapterForAddressError(f"No route of CONTROL_ROUTES leads to {address}.")


def configured_control(settings: Settings) -> Control:
    """The control systems that the settings name; none named is one in memory."""
    substrates: dict[Substrate, Control] = {Substrate.IN_MEMORY: Simulator(settings.simulated_signals)}
    if not settings.control_routes:
        return substrates[Substrate.IN_MEMORY]
    return RoutedControl({route.prefix: substrates[route.substrate] for route in settings.control_routes})
