"""A replacement of curl for machines that have none: the few options that the documents use.

python -m tests.support.documents.curl -si -X POST -H 'Name: value' -d '{}' --max-time 1 localhost:8000/path
"""

import argparse
import sys
import time
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

TIMED_OUT = 28
"""The exit code of a curl that reached its time limit."""


def main(arguments: list[str] | None = None) -> int:
    options = option_parser().parse_args(arguments)
    place = urlsplit(options.url if "://" in options.url else f"http://{options.url}")
    connection = HTTPConnection(place.hostname or "", place.port, timeout=options.max_time)
    headers = dict(line.split(": ", 1) for line in options.header)
    if options.data is not None:
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    method = options.request or ("GET" if options.data is None else "POST")
    path = (place.path or "/") + (f"?{place.query}" if place.query else "")
    deadline = time.monotonic() + (options.max_time or float("inf"))
    try:
        connection.request(method, path, options.data and options.data.encode(), headers)
        answer = connection.getresponse()
        if options.include:
            sys.stdout.buffer.write(head(answer))
        while chunk := answer.read1():
            sys.stdout.buffer.write(chunk)
            if time.monotonic() > deadline:
                return TIMED_OUT
    except TimeoutError:
        return TIMED_OUT
    finally:
        sys.stdout.buffer.flush()
        connection.close()
    return 0


def head(answer: HTTPResponse) -> bytes:
    """The status and the headers as they were sent."""
    lines = [f"HTTP/1.1 {answer.status} {answer.reason}", *(f"{name}: {value}" for name, value in answer.getheaders())]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("curl", add_help=False)
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-N", "--no-buffer", action="store_true")
    parser.add_argument("-i", "--include", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data")
    parser.add_argument("--max-time", type=float)
    parser.add_argument("url")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
