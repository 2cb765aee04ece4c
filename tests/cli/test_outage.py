"""What `bubble tail` says while its server is away."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from pathlib import Path

from tests.cli.conftest import TIMEOUT, Shell, running_server
from tests.docs.ports import free_ports


def test_an_outage_is_said_once_beside_the_events_and_so_is_its_end(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    place = tmp_path / "server"
    place.mkdir()
    with ExitStack() as first:
        server = first.enter_context(running_server(place, port=port))
        shell = Shell(directory=tmp_path, variables={"BUBBLE_URL": server.url, "BUBBLE_TOKEN": server.admin_token})
        thread = shell.ok("threads", "create").strip()
        with shell.process("tail", thread, "--raw", "--from", "1") as tail:
            assert tail.stdout is not None
            assert tail.stderr is not None
            types = [json.loads(tail.stdout.readline())["type"]]
            first.close()
            said = tail.stderr.readline()
            with running_server(place, port=port, token=server.admin_token):
                shell.ok("post", thread, "I am back")
                types += [json.loads(tail.stdout.readline())["type"] for _ in range(5)]
                tail.send_signal(signal.SIGINT)
                out, err = tail.communicate(timeout=TIMEOUT)
    assert said.startswith("Disconnected. ")
    assert err.splitlines() == ["Connected again; nothing was missed.", "Stopped following."]
    assert types == ["participant_joined", "run_started", *["message_part"] * 3, "run_finished"]
    assert (tail.returncode, out) == (0, "")
