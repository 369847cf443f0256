"""Do blocks become fewer bytes, and secret, and come back as they were?"""

import os
import sys
from pathlib import Path

import pytest

from tidegate.errors import SettingsError, SpoolError
from tidegate.spooler.log.codec import CLEAR, ENCRYPTED, ZSTD, Codec, DamagedError, read_keys

TEXT = b'{"event": "page", "user": 1234}\n' * 64
KEY, OTHER = b"k" * 32, b"o" * 32


def stored(codec: Codec, raw: bytes = TEXT, header: bytes = b"header") -> tuple[int, bytes]:
    flags, packed = codec.pack(raw)
    sealed = codec.seal(packed, header)
    assert len(sealed) == codec.length(len(packed))
    return flags, sealed


@pytest.mark.parametrize(
    ("codec", "flags"),
    [
        (CLEAR, 0),
        (Codec(zstd=True), ZSTD),
        (Codec(keys=(KEY,)), ENCRYPTED),
        (Codec(zstd=True, keys=(KEY,)), ZSTD | ENCRYPTED),
    ],
)
def test_what_was_packed_comes_back(codec: Codec, flags: int) -> None:
    got, sealed = stored(codec)
    assert got == flags
    assert codec.unseal(flags, codec.key_id, sealed, b"header", len(TEXT)) == TEXT
    assert (len(sealed) < len(TEXT) / 3) == bool(flags & ZSTD)
    assert (b"event" in sealed) == (not flags & ENCRYPTED)


def test_what_does_not_shrink_is_left_as_it_is() -> None:
    codec = Codec(zstd=True)
    raw = os.urandom(100)
    assert codec.pack(raw) == (0, raw)


def test_two_blocks_of_the_same_bytes_look_different() -> None:
    codec = Codec(keys=(KEY,))
    assert stored(codec) != stored(codec)


@pytest.mark.parametrize("at", [0, 12, -1])
def test_a_changed_byte_is_seen_when_it_is_encrypted(at: int) -> None:
    codec = Codec(keys=(KEY,))
    flags, sealed = stored(codec)
    bad = bytearray(sealed)
    bad[at] ^= 1
    with pytest.raises(DamagedError):
        codec.unseal(flags, codec.key_id, bytes(bad), b"header", len(TEXT))


def test_a_block_under_another_header_is_seen() -> None:
    codec = Codec(keys=(KEY,))
    flags, sealed = stored(codec)
    with pytest.raises(DamagedError):
        codec.unseal(flags, codec.key_id, sealed, b"HEADER", len(TEXT))


def test_a_block_that_swells_beyond_what_it_says_is_damaged() -> None:
    codec = Codec(zstd=True)
    flags, sealed = stored(codec, bytes(10_000_000))
    with pytest.raises(DamagedError):
        codec.unseal(flags, 0, sealed, b"", 100)
    with pytest.raises(DamagedError):
        codec.unseal(ZSTD, 0, b"no zstd", b"", 100)


def test_an_older_key_reads_what_it_wrote() -> None:
    old = Codec(keys=(OTHER,))
    flags, sealed = stored(old)
    rotated = Codec(keys=(KEY, OTHER))
    assert rotated.key_id != old.key_id
    assert rotated.unseal(flags, old.key_id, sealed, b"header", len(TEXT)) == TEXT


def test_without_the_key_one_sentence_says_so_and_nothing_is_called_damaged() -> None:
    codec = Codec(keys=(OTHER,))
    flags, sealed = stored(codec)
    for other in (CLEAR, Codec(keys=(KEY,))):
        with pytest.raises(SpoolError, match=f"key {codec.key_id:08x}, which is not in the key"):
            other.unseal(flags, codec.key_id, sealed, b"header", len(TEXT))


def test_a_log_in_clear_can_be_read_by_a_lane_that_encrypts_now() -> None:
    assert Codec(keys=(KEY,)).unseal(0, 0, TEXT, b"", len(TEXT)) == TEXT


def test_flags_of_a_later_version_are_refused() -> None:
    with pytest.raises(SpoolError, match="newer version"):
        CLEAR.readable(64, 0)


@pytest.mark.parametrize(
    ("module", "extra", "settings"),
    [("zstandard", "zstd", {"zstd": True}), ("cryptography", "encryption", {"keys": (KEY,)})],
)
def test_a_missing_package_names_its_extra(
    module: str, extra: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=rf"tidegate\[{extra}\]"):
        Codec(**settings)  # type: ignore[arg-type]


def test_a_key_file_holds_one_key_a_line(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY.hex()}\n{OTHER.hex().upper()}\n")
    assert read_keys(file) == (KEY, OTHER)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no key"),
        ("ab" * 31, "key 1 is not 64 hexadecimal digits"),
        ("ab" * 32 + "\nsecret", "key 2 is not 64 hexadecimal digits"),
        ("é" * 64, "key 1 is not 64"),
    ],
)
def test_a_bad_key_file_is_one_sentence_without_the_key(
    text: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(SettingsError, match=why) as caught:
        read_keys(file)
    assert "secret" not in str(caught.value)


def test_a_key_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the key file"):
        read_keys(tmp_path / "none")
