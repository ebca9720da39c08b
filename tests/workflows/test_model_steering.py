"""A language model steers a conduct: from the settings over the wire to the plant, and onto the record."""

from baton.cli.embedded.temporal import EmbeddedTemporal
from baton.domain.conduct.steered_conduct import ConductUntilAdvised
from tests.support.infrastructure.model_server import ModelServer, OpenAi
from tests.support.workflows.conduct_stack import open_conduct_stack
from tests.support.workflows.step_json import capture, setpoint, steered_value

SEARCH = {
    "objective": {"kind": "Maximize", "target_measurement_name": "sharpness"},
    "space": {"axes": [{"name": "focus", "lower": -2.0, "upper": 2.0}]},
    "objective_capture_name": "sharpness",
    "decide": {"substrate": "llm"},
}
STEPS = [setpoint("a", steered_value("focus")), capture("a", "sharpness")]
THERE = {"verdict": "Measure", "next_point": {"focus": 1.5}, "rationale": "It rises.", "confidence": 0.7}
ENOUGH = {"verdict": "Stop", "next_point": None, "rationale": "It is flat.", "confidence": 0.9}


async def test_the_configured_model_says_where_to_measure_next(database_url: str, temporal: EmbeddedTemporal) -> None:
    with ModelServer.running_server() as server:
        server.says(OpenAi().answer(THERE), OpenAi().answer(ENOUGH))
        models = {"decide_substrates": ["llm"], "decide_model": "openai/m-1", "openai_base_url": server.url}
        async with open_conduct_stack(database_url, temporal.address, simulated_signals={"a": 0.0}, **models) as stack:
            result = await stack.conduct(ConductUntilAdvised(**SEARCH, wait=60), await stack.register_from_recipe(STEPS))
    assert result["succeeded"], result
    assert stack.control.writes == [("a", -2.0), ("a", 1.5)]
    assert [asked.body["model"] for asked in server.asked] == ["m-1", "m-1"]
    assert all(asked.body["response_format"]["json_schema"]["strict"] for asked in server.asked)
