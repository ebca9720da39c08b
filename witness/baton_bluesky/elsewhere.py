"""The subcommands of `baton-witness` for runs that happen where no witness is: `follow` and `backfill`."""

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

from baton_bluesky.callback import BatonWitness


def declare_follow(subcommands: Any) -> None:
    """Declare `follow`."""
    follow = subcommands.add_parser("follow", help="witness runs that are published over 0MQ or Kafka")
    sources = follow.add_subparsers(required=True, metavar="SOURCE")
    zmq = sources.add_parser("zmq", help="a 0MQ proxy of Bluesky")
    zmq.add_argument("address", help="where the proxy sends documents from, such as localhost:5568")
    zmq.add_argument("--prefix", default="", help="the publisher's prefix, where several share a proxy")
    zmq.set_defaults(carry_out=follow_zmq)
    kafka = sources.add_parser("kafka", help="topics of Kafka")
    kafka.add_argument("--topic", action="append", required=True, help="a topic; may be given several times")
    kafka.add_argument("--servers", required=True, help="bootstrap servers, such as broker:9092")
    kafka.add_argument("--group", default="baton-witness", help="the consumer group")
    kafka.set_defaults(carry_out=follow_kafka)
    for source in (zmq, kafka):
        declare_witness(source)


def declare_backfill(subcommands: Any) -> None:
    """Declare `backfill`."""
    backfill = subcommands.add_parser("backfill", help="record runs that were measured before")
    sources = backfill.add_subparsers(required=True, metavar="SOURCE")
    tiled = sources.add_parser("tiled", help="a Tiled server; its key is in TILED_API_KEY")
    tiled.add_argument("address", help="the server, or a container in it, such as http://tiled:8000/raw")
    tiled.add_argument("--since", type=moment, help="only runs that began since then, such as 2026-03-01")
    tiled.add_argument("--dry-run", action="store_true", help="say what would be recorded, and record nothing")
    tiled.set_defaults(carry_out=backfill_tiled)
    declare_witness(tiled)


def declare_witness(parser: argparse.ArgumentParser) -> None:
    """Declare what a witness needs to know."""
    parser.add_argument("--service", required=True, help="the address of Baton")
    plan_help = "a Baton plan by name or id, or BLUESKY_PLAN=BATON_PLAN; may be given several times"
    parser.add_argument("--plan", action="append", required=True, help=plan_help)
    parser.add_argument("--token", help="a file or an environment variable with the token; BATON_TOKEN_FILE, BATON_TOKEN")
    parser.add_argument("--journal", help="the directory of the journal")
    parser.add_argument(
        "--observe", choices=["thinned", "all", "none"], default="thinned", help="which readings are recorded"
    )
    parser.add_argument("--subject-key", default="sample", help="the key of start documents that names the sample")
    simulated = parser.add_mutually_exclusive_group()
    simulated.add_argument("--simulated", action="store_true", default=None, help="the equipment is simulated")
    simulated.add_argument("--real", dest="simulated", action="store_false", help="the equipment is real")


def witness_of(given: argparse.Namespace, writer: str, *, follows: bool) -> BatonWitness:
    """Return a witness of runs elsewhere."""
    return BatonWitness(
        given.service,
        plans_of(given.plan),
        token=given.token,
        simulated=given.simulated,
        journal=given.journal,
        observe=given.observe,
        subject_key=given.subject_key,
        writer=writer,
        follows=follows,
    )


def follow_zmq(given: argparse.Namespace) -> int:
    """Follow a 0MQ proxy until told to end."""
    from baton_bluesky.follow import ZmqSource, follow_until_told

    try:
        source = ZmqSource(given.address, given.prefix.encode())
    except ImportError:
        print("0MQ needs the package pyzmq: pip install 'baton-bluesky[zmq]'.", file=sys.stderr)
        return 2
    name = writer_name("zmq", given.address, given.prefix)
    follow_until_told(source, witness_of(given, name, follows=True), name)
    return 0


def follow_kafka(given: argparse.Namespace) -> int:
    """Follow topics of Kafka until told to end."""
    from baton_bluesky.follow import KafkaSource, follow_until_told

    try:
        source = KafkaSource(given.topic, given.servers, given.group)
    except ImportError:
        print("Kafka needs the package confluent-kafka: pip install 'baton-bluesky[kafka]'.", file=sys.stderr)
        return 2
    name = writer_name("kafka", given.servers, given.group, *given.topic)
    follow_until_told(source, witness_of(given, name, follows=True), name)
    return 0


def backfill_tiled(given: argparse.Namespace) -> int:
    """Record the runs of a Tiled server."""
    from baton_bluesky.backfill import Backfill, backfill
    from baton_bluesky.service import BatonService
    from baton_bluesky.tiled_catalog import TiledCatalog

    witness = witness_of(given, f"tiled-{os.getpid()}-{int(time.time())}", follows=False)
    work = Backfill(TiledCatalog(given.address), witness, BatonService(given.service, given.token))
    return backfill(work, given.since, given.dry_run)


def plans_of(given: list[str]) -> str | dict[str, str]:
    """Return the plan, or those of each Bluesky plan with the default."""
    named = dict(one.split("=", 1) for one in given if "=" in one)
    others = [one for one in given if "=" not in one]
    if len(others) > 1:
        raise SystemExit(
            f"--plan: {others[0]!r} and {others[1]!r} are both the default; name Bluesky plans: count={others[1]!r}."
        )
    return others[0] if others and not named else {**({"default": others[0]} if others else {}), **named}


def writer_name(*parts: str) -> str:
    """Return the name of the journal of a source, the same for the same source."""
    from hashlib import sha256

    return f"{parts[0]}-{sha256(chr(0).join(parts).encode(errors='replace')).hexdigest()[:16]}"


def moment(text: str) -> float:
    """Return the time that a text names; without a zone it is that of this machine."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give one such as 2026-03-01T08:00.") from error
