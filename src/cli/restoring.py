"""`baton restore`: a database that was restored by PostgreSQL's own tools is made ready for the service."""

from pathlib import Path

import psycopg

from baton.cli import startup
from baton.cli.messages import refuse
from baton.infrastructure.postgres.adoption import adopt


def adopt_record(data_dir: Path, *, wanted: bool) -> None:
    """Adopt the record, and print what that came to."""
    if not wanted:
        refuse("Say `baton restore --adopt`: it makes a record that PostgreSQL's own tools restored at home in its cluster.")
    settings = startup.with_stack_servers(startup.load_settings(), data_dir)
    url = settings.database_owner_url or startup.required_database(settings)
    try:
        adopted = adopt(url)
    except psycopg.errors.InsufficientPrivilege:
        refuse("Only the owner of the database may adopt a record; give the owner's login in DATABASE_OWNER_URL.")
    except psycopg.errors.UndefinedTable:
        refuse("There is no record in this database; restore one into it first.")
    except psycopg.Error as error:
        refuse(f"{startup.DATABASE_FAULT}: {startup.one_line(error)}. Start it, or correct DATABASE_URL.")
    if adopted is None:
        print("The record is at home in this cluster already; nothing was changed.")
        return
    followers = f"{adopted.followers} followers of the log go on where they were"
    print(f"Adopted {adopted.events} events: their order is that of their positions, and {followers}.")
