"""A provenance as a picture and as PROV-JSON, and what of it a caller sees who may not see everything."""

import json
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from prov.model import ProvAssociation, ProvDerivation, ProvDocument, ProvElement

from baton.domain.data.lineage import Lineage, LineageNode
from baton.domain.data.prov_json import prov_json
from baton.domain.data.provenance import GetDatasetProvenance
from baton.domain.data.provenance_graph import ProvenanceGraph, ProvenanceKind, ProvenanceNode, ProvenanceRelation
from baton.domain.data.provenance_picture import (
    Box,
    columns_of,
    folded_boxes,
    joined_lines,
    layers_of,
    place_boxes,
    provenance_picture,
    without_implied_lines,
)
from tests.support.domain.datasets import registered_dataset
from tests.support.domain.provenance_graphs import PICTURE, GraphMaker, example, siblings
from tests.support.domain.world import World, new_id
from tests.support.tables import for_each

SVG = "{http://www.w3.org/2000/svg}"
HERE: Any = SimpleNamespace(base_url="https://baton.example/", self_facility_code="facility")
NOWHERE: Any = SimpleNamespace(base_url="", self_facility_code="facility")


def drawing(graph: ProvenanceGraph) -> ElementTree.Element:
    return ElementTree.fromstring(provenance_picture(graph))


def texts_of(element: ElementTree.Element, style: str) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text") if text.get("class") == style]


def boxes_of(picture: ElementTree.Element) -> dict[str, ElementTree.Element]:
    groups = (
        group for group in picture.iter(f"{SVG}g") if "transform" in group.attrib and group.find(f"{SVG}title") is not None
    )
    return {texts_of(group, "t")[0]: group for group in groups}


class TestPicture:
    def test_the_documented_picture_is_that_of_the_example(self) -> None:
        assert PICTURE.read_text() == provenance_picture(example()) + "\n", (
            "write it again: python -m tests.support.domain.provenance_graphs"
        )

    def test_everything_but_people_is_drawn_and_people_are_in_the_tips(self) -> None:
        graph = example()
        boxes = boxes_of(drawing(graph))
        assert len(boxes) == len(graph.nodes) - 1
        tip = boxes["Load step 3"].findtext(f"{SVG}title") or ""
        actor = next(node for node in graph.nodes if node.kind is ProvenanceKind.ACTOR)
        assert f"wasAssociatedWith {actor.id}" in tip.splitlines()

    def test_states_are_said_and_marked(self) -> None:
        boxes = boxes_of(drawing(example()))
        told = {name: (box.get("class", "").split()[1:], texts_of(box, "s")[0]) for name, box in boxes.items()}
        assert told["Volume, step 3"] == (["asked"], "dataset · Production")
        assert told["Volume, wrong centre"] == (["bad"], "dataset · Retracted")
        assert told["Crack map, old"] == (["void"], "dataset · Discarded · Trial")
        assert told["Strain field"] == (["simulated"], "dataset · Simulated · Trial")

    def test_a_run_that_happened_elsewhere_says_so(self) -> None:
        maker = GraphMaker()
        maker.dataset("frames")
        maker.add(ProvenanceKind.RUN, "count 42", "Completed", witnessed=True)
        box = boxes_of(drawing(maker.graph("frames")))["count 42"]
        assert texts_of(box, "s")[0] == "run · Completed · witnessed"

    def test_the_legend_explains_what_there_is_and_nothing_else(self) -> None:
        legend = set(texts_of(drawing(siblings(2)), "s"))
        assert {"dataset", "derived from"} <= legend
        assert not {"run", "Discarded, Withdrawn", "simulated"} & legend

    @for_each("label", ['<script>alert("x")</script> & co', "null \x00 and bell \x07", "\u202egnitirw", "\ud800"])
    def test_any_name_is_shown_as_text(self, label: str) -> None:
        maker = GraphMaker()
        maker.dataset("named", label=label)
        picture = provenance_picture(maker.graph("named"))
        element = ElementTree.fromstring(picture.encode())
        assert "<script" not in picture
        assert element.find(f".//{SVG}script") is None

    def test_three_hundred_siblings_are_one_box(self) -> None:
        boxes = boxes_of(drawing(siblings(300)))
        assert set(boxes) == {"parent", "300 datasets"}
        assert (boxes["300 datasets"].findtext(f"{SVG}title") or "").endswith("and 288 more")

    def test_the_dataset_that_is_asked_about_is_never_folded(self) -> None:
        graph = siblings(300)
        child = graph.nodes[7]
        boxes = boxes_of(drawing(graph._replace(dataset_id=child.id)))
        assert set(boxes) == {"parent", child.label, "299 datasets"}

    def test_what_is_discarded_or_retracted_is_not_folded_into_what_is_well(self) -> None:
        maker = GraphMaker()
        maker.dataset("parent")
        for number in range(200):
            state = {"intent": "Retracted"} if number < 50 else {"status": "Discarded"} if number < 90 else {}
            maker.dataset(f"child {number}", "parent", **state)
        boxes = boxes_of(drawing(maker.graph("parent")))
        assert {name: box.get("class") for name, box in boxes.items()} == {
            "parent": "k-dataset asked",
            "50 datasets": "k-dataset bad",
            "40 datasets": "k-dataset void",
            "110 datasets": "k-dataset",
        }

    def test_what_a_longer_way_says_is_not_drawn_unless_it_is_a_derivation_or_a_member(self) -> None:
        graph = example()
        nodes = {node.id: node for node in graph.nodes if node.kind is not ProvenanceKind.ACTOR}
        edges = [edge for edge in graph.edges if edge.target in nodes]
        lines = without_implied_lines(
            joined_lines(folded_boxes(nodes.values(), layers_of(nodes, edges), graph.dataset_id), edges)
        )
        drawn = {(line.result.nodes[0].label, line.origin.nodes[0].label) for line in lines}
        assert ("Projections, step 3", "Load step 3") not in drawn  # it was captured under the run
        assert ("Strain field", "Volume, step 3") in drawn
        assert ("Fatigue of an alloy bar", "Volume, step 3") in drawn

    def test_where_there_is_more_it_says_so(self) -> None:
        assert "there is more than is shown here" in " ".join(texts_of(drawing(siblings(1)._replace(truncated=True)), "s"))


@st.composite
def graphs(draw: st.DrawFn) -> ProvenanceGraph:
    """Any derivations among up to forty datasets."""
    maker = GraphMaker()
    count = draw(st.integers(1, 40))
    for number in range(count):
        parents = draw(st.sets(st.integers(0, number - 1), max_size=4)) if number else set()
        maker.dataset(f"dataset {number}", *(f"dataset {parent}" for parent in parents))
    return maker.graph(f"dataset {draw(st.integers(0, count - 1))}")


@given(graphs())
def test_results_are_right_of_their_origins_and_no_box_lies_over_another(graph: ProvenanceGraph) -> None:
    nodes = {node.id: node for node in graph.nodes}
    layers = layers_of(nodes, graph.edges)
    assert all(layers[edge.target] < layers[edge.source] for edge in graph.edges)
    boxes = folded_boxes(nodes.values(), layers, graph.dataset_id)
    assert sorted(node.id for box in boxes for node in box.nodes) == sorted(nodes)
    columns = columns_of(boxes, joined_lines(boxes, graph.edges))
    place_boxes(columns)
    for column in columns:
        assert len({box.x for box in column}) == 1
        assert all(bottom(one) <= top(other) for one, other in pairwise(sorted(column, key=lambda box: box.y)))


def top(box: Box) -> float:
    return box.y - box.height / 2 + 0.01  # rounding


def bottom(box: Box) -> float:
    return box.y + box.height / 2


ELEMENTS = {"entity", "activity", "agent"}
ENDS = {
    "wasDerivedFrom": ("generatedEntity", "usedEntity", "entity", "entity"),
    "wasGeneratedBy": ("entity", "activity", "entity", "activity"),
    "used": ("activity", "entity", "activity", "entity"),
    "wasInformedBy": ("informed", "informant", "activity", "activity"),
    "wasAssociatedWith": ("activity", "agent", "activity", "agent"),
    "wasAttributedTo": ("entity", "agent", "entity", "agent"),
    "hadMember": ("collection", "entity", "entity", "entity"),
    "specializationOf": ("specificEntity", "generalEntity", "entity", "entity"),
}
"""What PROV says may be at the ends of a relation; an influence leads from anything to anything."""


class TestProvJson:
    def test_a_reader_of_prov_finds_every_thing_and_relation(self) -> None:
        graph = example()
        document = ProvDocument.deserialize(content=prov_json(graph, HERE).decode(), format="json")
        records = document.get_records()
        elements = [record for record in records if isinstance(record, ProvElement)]
        assert len(elements) == len(graph.nodes)
        counts = Counter(edge.relation for edge in graph.edges)
        relations = len(records) - len(elements)
        assert relations == len(graph.edges) - counts[ProvenanceRelation.HAD_PLAN]  # a plan belongs to an association
        derivations = [record for record in records if isinstance(record, ProvDerivation)]
        assert len(derivations) == counts[ProvenanceRelation.WAS_DERIVED_FROM]
        [association] = [one for one in records if isinstance(one, ProvAssociation) and one.args[2] is not None]
        run = next(node for node in graph.nodes if node.kind is ProvenanceKind.RUN)
        assert str(association.args[0].uri) == f"https://baton.example/runs/{run.id}"

    def test_each_end_of_a_relation_is_of_the_kind_that_prov_demands(self) -> None:
        document = json.loads(prov_json(example(), NOWHERE))
        section_of = {name: section for section in ELEMENTS for name in document[section]}
        prefixes = document["prefix"]
        assert {name.partition(":")[0] for name in section_of} <= prefixes.keys()
        assert prefixes["dataset"] == "urn:baton:facility:datasets:"
        for relation, records in document.items():
            if relation not in ENDS:
                assert relation in {*ELEMENTS, "prefix", "wasInfluencedBy"}
                continue
            later, earlier, later_kind, earlier_kind = ENDS[relation]
            for id, record in records.items():
                assert id.startswith("_:")
                assert section_of[record[f"prov:{later}"]] == later_kind
                assert section_of[record[f"prov:{earlier}"]] == earlier_kind

    def test_a_revision_is_a_derivation_of_its_type_and_a_plan_may_stand_alone(self) -> None:
        maker = GraphMaker()
        for name in ("old", "new"):
            maker.add(ProvenanceKind.CALIBRATION_REVISION, name)
        maker.link("new", ProvenanceRelation.WAS_REVISION_OF, "old")
        maker.add(ProvenanceKind.PROCEDURE, "alignment")
        maker.add(ProvenanceKind.RECIPE, "recipe")
        maker.link("alignment", ProvenanceRelation.HAD_PLAN, "recipe")
        document = json.loads(prov_json(maker.graph("old"), HERE))
        [derivation] = document["wasDerivedFrom"].values()
        assert derivation["prov:type"] == {"$": "prov:Revision", "type": "prov:QUALIFIED_NAME"}
        [association] = document["wasAssociatedWith"].values()
        assert set(association) == {"prov:activity", "prov:plan"}
        ProvDocument.deserialize(content=json.dumps(document), format="json")


def test_of_what_a_caller_may_not_get_it_learns_nothing_but_that_it_is_there() -> None:
    world = World()
    id, actor_id = registered_dataset(world), new_id()
    world.ports |= {
        "dataset_lineage": Lineage((LineageNode(id, 0, ()),), truncated=False),
        "summary_rows": (),
        "stream_recorders": {id: actor_id},
    }
    [shown, _] = world.ask(GetDatasetProvenance(), on=id)["nodes"]
    assert (shown.kind, shown.label, shown.status) == ("dataset", "scan_001.h5", "Registered")
    world.denied = {"GetDataset", "GetActor"}
    [hidden, actor] = world.ask(GetDatasetProvenance(), on=id)["nodes"]
    assert hidden == ProvenanceNode(id, ProvenanceKind.DATASET)
    assert actor == ProvenanceNode(actor_id, ProvenanceKind.ACTOR)
