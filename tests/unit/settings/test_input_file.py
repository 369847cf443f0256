"""What is a file, and what would be waited for without a word."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import InputError
from tidegate.settings.input_file import open_input, size_of


def refused(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        open_input(path)
    with pytest.raises(InputError) as again:
        size_of(path)
    assert str(again.value) == str(raised.value)
    return str(raised.value)


def test_a_regular_file_is_opened_and_measured(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"tidegate")
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, link):
        with open_input(name) as file:
            assert file.read() == b"tidegate"
        assert size_of(name) == 8


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    assert refused(path).startswith(f"cannot read {path}: it is a named pipe")


def test_neither_a_socket_nor_a_device_nor_a_directory_is_read(tmp_path: Path) -> None:
    path = Path(os.path.relpath(tmp_path / "s"))  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert refused(path) == f"cannot read {path}: it is a socket"
    assert refused(Path("/dev/zero")) == "cannot read /dev/zero: it is a device"
    assert refused(tmp_path) == f"cannot read {tmp_path}: it is a directory"


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == f"cannot read {tmp_path / 'gone'}: there is no such file"
    assert "that cannot be the name of a file" in refused(Path("a\0b"))


def test_a_descriptor_that_a_shell_has_opened_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"given")
    os.close(writer)
    with open_input(Path(f"/dev/fd/{reader}")) as file:
        assert file.read() == b"given"
    os.close(reader)


def test_what_leads_to_standard_input_is_read(tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("/dev/stdin")
    script = (
        "import sys; from pathlib import Path; from tidegate.settings.input_file import open_input;"
        "print(open_input(Path(sys.argv[1])).read().decode())"
    )
    for name in ("/dev/stdin", str(link)):
        run = subprocess.run(
            [sys.executable, "-c", script, name],
            input="given",
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout == "given\n"
