"""The user of this machine that programs run as."""

import os
import pwd
from dataclasses import dataclass
from typing import Any


class AccountUnusableError(Exception):
    """Programs cannot run as the user that is named; the message says why and what to do."""


@dataclass(frozen=True)
class Account:
    """A user and its groups, as numbers."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @property
    def plain(self) -> dict[str, Any]:
        return {"uid": self.uid, "gid": self.gid, "groups": list(self.groups)}


def account_named(name: str) -> Account:
    """The user of this name, which this process can become; raises AccountUnusableError."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise AccountUnusableError(f"COMPUTE_USER names {name}, whom this machine does not know; add that user.") from None
    if os.geteuid() != 0:
        raise AccountUnusableError("COMPUTE_USER takes a worker run by root, and this one is not; start it so, or unset it.")
    if entry.pw_uid == 0:
        raise AccountUnusableError(f"COMPUTE_USER names {name}, who is root; name a user with no rights beyond its own.")
    return Account(name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)), entry.pw_dir)
