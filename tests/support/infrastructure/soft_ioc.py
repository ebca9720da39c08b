"""An IOC of EPICS base with the records of `soft_ioc.db` over both protocols, run as a process of its own.

Each line in is one command as JSON, each line out its answer. Where it listens is said by its environment.
"""

import json
import os
import sys
from pathlib import Path

import pvxslibs.path
from epicscorelibs.ioc import ioc, iocshRegisterCommon, start_ioc

HERE = Path(__file__).parent


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the shell of the IOC prints what it did
    iocshRegisterCommon()
    ioc(f'asSetFilename "{HERE / "soft_ioc.acf"}"')
    start_ioc(
        database=str(HERE / "soft_ioc.db"),
        extra_dbd_load=[("pvxsIoc.dbd", pvxslibs.path.dbd_path)],
        extra_dso_load=["pvxslibs.lib.pvxsIoc"],
    )
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        assert command["do"] == "put", command
        print(json.dumps(ioc(f'dbpf "{command["address"]}" "{command["value"]}"')), file=answers, flush=True)


if __name__ == "__main__":
    main()
