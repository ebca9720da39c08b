"""The plot of a conduct: its curve grows without a click, and what is drawn is in the address."""

from baton.application.control import Reading
from baton.console.plots import SHADES
from tests.api.test_points import GRID, LINE
from tests.console.test_conduct import page_of
from tests.support.api.rest_beamline import beamline
from tests.support.console.page_source import PageSource
from tests.support.console.page_text import text_of
from tests.support.domain.conducts import BY_CALLER
from tests.support.workflows.conduct_service import PAUSE, ConductService
from tests.support.workflows.step_json import capture, setpoint, steered_value


def plots_of(html: str) -> list[str | None]:
    """Return what the plots of a page say to readers of screens."""
    return [one.get("aria-label") for one in PageSource.of(html).all("svg") if one.get("class") == "plot"]


async def test_a_line_scan_is_drawn_while_it_goes_on_and_as_the_address_wants_it(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(*LINE[:4], PAUSE, *LINE[4:])
    await conduct_service.pauses.wait_until_reached()
    assert plots_of(await page_of(conduct_service.operator, procedure_id)) == ["height over a; the latest is 1"]
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    assert plots_of(html) == ["height over a; the latest is 3"]
    assert html.count('<circle class="dot dot-0"') == 5, "four places, and the latest"
    assert "All points as CSV" in text_of(html)
    over_time = await page_of(conduct_service.operator, procedure_id, x="time")
    assert plots_of(over_time) == ["height over time; the latest is 3"]


async def test_a_grid_is_a_map(conduct_service: ConductService) -> None:
    procedure_id, conduct_id = await conduct_service.start_conduct(*GRID)
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    assert plots_of(html) == ["height over a and c; the latest is 2"]
    assert html.count('<rect class="heat-') == 6 + SHADES, "the places, and the scale"
    assert "a 2, c 1: 2" in html


async def test_a_search_of_two_axes_shows_where_it_measured_and_where_it_measures_next(
    conduct_service: ConductService,
) -> None:
    steps = [setpoint("a", steered_value("focus")), setpoint("c", steered_value("tilt")), capture("b", "sharpness")]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    axes = [{"name": name, "lower": -2, "upper": 2} for name in ("focus", "tilt")]
    search = {**BY_CALLER, "space": {"axes": axes}, "decide": {"substrate": "grid_walk", "points_per_axis": 2}}
    await conduct_service.result(await conduct_service.conduct(procedure_id, "steering/conduct", **search))
    html = await page_of(conduct_service.operator, procedure_id)
    assert plots_of(html) == ["sharpness over a and c; the latest is 1.5"]
    assert html.count('<circle class="heat-') == 4
    assert 'class="best"' in html


async def test_all_points_are_a_table_without_formulas(conduct_service: ConductService) -> None:
    steps = [step for n in range(2) for step in (setpoint("=a", n), capture("b", f"@level_{n}"))]
    conduct_service.stack.plant.set_reading("=a", Reading(value=0))
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps)
    await conduct_service.result(conduct_id)
    answer = await conduct_service.operator.get(f"/console/procedures/{procedure_id}/points.csv")
    heading, *lines = answer.text.splitlines()
    assert answer.headers["content-type"].startswith("text/csv")
    assert heading == "at,pass,step,'=a,'@level,quality"
    assert [line.split(",", 3)[3] for line in lines] == ["0,1.5,Good", "1,1.5,Good"]


async def test_the_page_of_a_run_has_the_plot_and_the_table_of_its_phase(conduct_service: ConductService) -> None:
    line = await beamline(conduct_service.operator)
    run_id = await line.start_run()
    phase = {"name": "Scan", "kind": "scan", "parent_run_id": run_id}
    procedure_id = await line.api.create("/procedures", phase)
    conduct = {"command": "conduct_procedure", "steps": LINE}
    asked = {"phases": [{"procedure_id": procedure_id, "conduct": conduct}], "wait": 0}
    accepted = await line.api.post(f"/runs/{run_id}/conduct", asked)
    await conduct_service.result(accepted.json()["work_id"])
    html = (await line.api.get(f"/console/runs/{run_id}", x="time")).text
    assert plots_of(html)[0] == "height over time; the latest is 3"
    cells = [one.text for one in PageSource.of(html).all("th", "td")]
    first = cells.index("height") + 1
    assert [cells[first + row * 3 + 1 : first + row * 3 + 3] for row in range(4)] == [[str(n)] * 2 for n in (3, 2, 1, 0)]
    assert f"/console/procedures/{procedure_id}/points.csv" in html


async def test_values_of_one_unit_are_drawn_together_unless_the_address_names_one(conduct_service: ConductService) -> None:
    plant = conduct_service.stack.plant
    for address, value in (("left", 3.0), ("right", 4.0)):
        plant.set_reading(address, Reading(value=value, units="nA"))
    names = ("left", "right")
    steps = [one for n in range(2) for one in (setpoint("a", n), *(capture(name, f"{name}_{n}") for name in names))]
    procedure_id, conduct_id = await conduct_service.start_conduct(*steps)
    await conduct_service.result(conduct_id)
    html = await page_of(conduct_service.operator, procedure_id)
    assert plots_of(html) == ["left, right over a; the latest are 3 and 4 nA"]
    assert html.count('<path class="line line-') == 4, "each line, and its sample beside its name"
    alone = await page_of(conduct_service.operator, procedure_id, y="right")
    assert plots_of(alone) == ["right over a; the latest is 4 nA"]
    turned = await page_of(conduct_service.operator, procedure_id, y="right,left", unit="uA")
    assert plots_of(turned) == ["right, left over a; the latest are 0.004 and 0.003 uA"]


async def test_a_search_along_one_axis_shows_where_it_measures_next(conduct_service: ConductService) -> None:
    steps = [setpoint("a", steered_value("focus")), PAUSE, capture("b", "sharpness")]
    procedure_id = await conduct_service.stack.register_from_recipe(steps)
    axes = [{"name": "focus", "lower": -2, "upper": 2}]
    search = {**BY_CALLER, "space": {"axes": axes}, "decide": {"substrate": "grid_walk", "points_per_axis": 2}}
    conduct_id = await conduct_service.conduct(procedure_id, "steering/conduct", **search)
    await conduct_service.pauses.wait_until_reached()
    conduct_service.pauses.end()
    await conduct_service.pauses.wait_until_reached()
    html = await page_of(conduct_service.operator, procedure_id)
    assert html.count('<path class="ahead"') == 1
    assert "where it measures next" in html
    conduct_service.pauses.end()
    await conduct_service.result(conduct_id)
    assert '<path class="ahead"' not in await page_of(conduct_service.operator, procedure_id)
