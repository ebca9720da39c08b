"""A store with a past: a million events of fifty thousand assets, written as the service would have written them."""

import psycopg

ASSETS = 50_000
EVENTS_EACH = 20

FILL = """
INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id, command_name,
                    correlation_id, occurred_at)
SELECT gen_random_uuid(), 'Asset', id, version,
       CASE WHEN version = 1 THEN 'AssetRegistered' ELSE 'AssetRenamed' END,
       CASE WHEN version = 1
            THEN json_build_object('asset_id', id, 'name', 'Stage', 'tier', 'Device', 'parent_id', NULL,
                 'facility_code', 'facility', 'family_ids', '[]'::json, 'model_id', NULL, 'controller_id', NULL,
                 'located_in_enclosure_id', NULL, 'drawing', NULL, 'alternate_identifiers', '[]'::json,
                 'owners', '[]'::json, 'occurred_at', time)
            ELSE json_build_object('asset_id', id, 'name', 'Stage ' || version, 'occurred_at', time) END,
       '00000000-0000-0000-0000-000000000000',
       CASE WHEN version = 1 THEN 'RegisterAsset' ELSE 'RenameAsset' END,
       gen_random_uuid(), time
FROM (SELECT lpad(to_hex(1760000000000 + number), 12, '0') || '7' || substr(md5(number::text), 1, 3) || '8'
             || substr(md5(number::text), 4, 15) AS text, number
      FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS number) AS numbered,
     LATERAL (SELECT text::uuid AS id) AS streams,
     generate_series(1, %(each)s) AS version,
     LATERAL (SELECT timestamptz '2026-01-01' + make_interval(secs => number + version) AS time) AS times
"""


def fill(url: str, assets: int = ASSETS, each: int = EVENTS_EACH) -> int:
    """Write the past; answers how many events there are now."""
    with psycopg.connect(url, autocommit=True) as connection:
        for first in range(1, assets + 1, 5000):
            connection.execute(FILL, {"first": first, "last": min(first + 4999, assets), "each": each})
        connection.execute("VACUUM ANALYZE events")
        row = connection.execute("SELECT count(*) FROM events").fetchone()
        assert row is not None
        return int(row[0])


RENAMES = "AssetRenamed", """json_build_object('name', 'Stage ' || version)"""
"""Events of which a fold needs the last one only."""

ADJUSTMENTS = (
    "RunAdjusted",
    """json_build_object('parameters_patch', json_build_object('exposure', version),
    'effective_parameters', json_build_object('exposure', version), 'parameters_schema_revision', 0, 'reason', 'brighter',
    'adjusted_by', '00000000-0000-0000-0000-000000000000', 'decided_by_decision_id', NULL)""",
)
"""Events of which a fold needs every one."""


def lengthen(url: str, stream_type: str, id: str, length: int, events: tuple[str, str]) -> None:
    """Give a stream so many events; they are of one type, and their payloads an expression of their version."""
    event_type, payload = events
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"""
            INSERT INTO events (event_id, stream_type, stream_id, version, event_type, payload, principal_id,
                                command_name, correlation_id, occurred_at)
            SELECT gen_random_uuid(), %(type)s, %(id)s::uuid, version, '{event_type}', {payload},
                   '00000000-0000-0000-0000-000000000000', 'Written', gen_random_uuid(), clock_timestamp()
            FROM generate_series(
                (SELECT max(version) + 1 FROM events WHERE stream_type = %(type)s AND stream_id = %(id)s::uuid), %(length)s
            ) AS version
            """,
            {"type": stream_type, "id": id, "length": length},
        )
