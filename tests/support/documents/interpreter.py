"""The interpreter of a document: takes programs on standard input, one JSON line each, and answers what they print.

All programs share one namespace, as they do where a reader types them one after the other.
"""

import io
import json
import sys
import traceback
from contextlib import redirect_stdout
from typing import Any


def main() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    answers = sys.stdout
    for line in sys.stdin:
        program, said, raised = json.loads(line), io.StringIO(), None
        with redirect_stdout(said):
            try:
                exec(compile(program["code"], program["place"], "exec"), namespace)
            except Exception:
                raised = traceback.format_exc()
        print(json.dumps({"printed": said.getvalue(), "raised": raised}), file=answers, flush=True)


if __name__ == "__main__":
    main()
