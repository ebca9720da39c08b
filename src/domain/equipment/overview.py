"""What people watch at a beamline: a few signals and a camera, said of its root asset."""

from typing import Annotated

from pydantic import Field

from baton.domain.equipment.asset import IN_SERVICE, Asset, AssetOverviewSet, asset
from baton.domain.equipment.asset_tree import NotABeamlineError, refusal_of_part
from baton.domain.equipment.values import InvalidAssetOverviewError, Overview, OverviewSignal
from baton.domain.kernel import Call, JudgedVerb, Outcome
from baton.domain.shared.reads import Reads

MOST_WATCHED = 6  # signals


@asset.command(put="/{asset_id}/overview", allowed=IN_SERVICE)
class SetAssetOverview(Overview, JudgedVerb[Asset, NotABeamlineError | None]):
    """Say what people watch at a beamline: signals with their values and trends, and a camera's latest picture.

    The asset is the root of the beamline. What is given replaces what was said before.
    """

    signals: Annotated[tuple[OverviewSignal, ...], Field(max_length=MOST_WATCHED)] = ()
    """The signals that are shown, in their order."""

    def gather(self, asset: Asset, call: Call) -> Reads[NotABeamlineError | None]:
        return (yield from refusal_of_part(asset, "say it of that root"))

    def decide(self, asset: Asset, call: Call, facts: NotABeamlineError | None) -> Outcome:
        if facts is not None:
            raise facts
        if len({one.name for one in self.signals}) < len(self.signals):
            detail = "Two watched signals have the same name; name each signal once."
            raise InvalidAssetOverviewError(detail, reason="duplicate")
        wanted = Overview(signals=self.signals, camera=self.camera)
        return [] if wanted == asset.overview else [AssetOverviewSet(**dict(wanted))]
