"""How do the bytes of a block become fewer, and readable only with a key?

Whole blocks are compressed and encrypted, not records: 64 events of JSON together shrink to a
third, each alone to three quarters, and one AES call for a block costs a tenth of one for each
record in it. Compression first, since nothing compresses what is encrypted.

zstd (RFC 8878) at level 1, the fastest. AES-256-GCM (NIST SP 800-38D) with the header of the block
as associated data, so a block can neither be changed nor put in another place. The nonce is
random; SP 800-38D 8.3 allows 2^32 blocks for one key.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from tidegate.errors import SettingsError, SpoolError, missing_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from zstandard import ZstdCompressor, ZstdDecompressor

__all__ = ["CLEAR", "ENCRYPTED", "ZSTD", "Codec", "DamagedError", "read_keys"]

ZSTD: Final = 1
ENCRYPTED: Final = 2
"""Flags of a block: what was done to its bytes."""

_LEVEL: Final = 1
_NONCE: Final = 12
_TAG: Final = 16
_KEY_RE: Final = re.compile(r"[0-9a-fA-F]{64}")


class DamagedError(Exception):
    """These bytes are not those that were written. Stays within the log."""


@final
class Codec:
    """What is done to blocks on their way to disk, and undone on the way back.

    `keys` are those of a key file: the first encrypts, all of them decrypt. With none, blocks are
    written in clear. Blocks say themselves what was done to them, so an older block of the same
    log may have other flags or another key.
    """

    __slots__ = ("_ciphers", "_compress", "_decompress", "_zstd", "key_id")

    def __init__(self, *, zstd: bool = False, keys: tuple[bytes, ...] = ()) -> None:
        self._zstd: Final = zstd
        self._compress: ZstdCompressor | None = None
        self._decompress: ZstdDecompressor | None = None
        self._ciphers: dict[int, AESGCM] = {}
        self.key_id = 0  # of the key that encrypts; zero: none does
        if zstd:
            self._load_zstd()
        if keys:
            self._load_keys(keys)

    def pack(self, raw: bytes) -> tuple[int, bytes]:
        """Compress, if that is wanted and makes it smaller: the flags that it gets, the bytes."""
        encrypted = ENCRYPTED if self.key_id else 0
        if self._zstd:
            assert self._compress is not None
            packed = self._compress.compress(raw)
            if len(packed) < len(raw):
                return encrypted | ZSTD, packed
        return encrypted, raw

    def length(self, packed: int) -> int:
        """How long so many packed bytes are on disk: known before they are encrypted."""
        return packed + _NONCE + _TAG if self.key_id else packed

    def seal(self, packed: bytes, header: bytes) -> bytes:
        """Encrypt, if there is a key; `header` cannot be changed without being noticed."""
        if not self.key_id:
            return packed
        nonce = os.urandom(_NONCE)
        return nonce + self._ciphers[self.key_id].encrypt(nonce, packed, header)

    def readable(self, flags: int, key_id: int) -> None:
        """Raise one sentence if what such a block needs is not here."""
        if flags & ~(ZSTD | ENCRYPTED):
            raise SpoolError("the log was written by a newer version, in a way unknown to this one")
        if flags & ENCRYPTED and key_id not in self._ciphers:
            raise SpoolError(
                f"the log is encrypted with the key {key_id:08x}, which is not in the key file"
            )
        if flags & ZSTD and self._decompress is None:
            self._load_zstd()

    def unseal(self, flags: int, key_id: int, stored: bytes, header: bytes, raw: int) -> bytes:
        """The bytes as they were before `pack`: `raw` of them, else `DamagedError`."""
        self.readable(flags, key_id)
        if flags & ENCRYPTED:
            stored = self._decrypt(key_id, stored, header)
        if flags & ZSTD:
            stored = self._inflate(stored, raw)
        if len(stored) != raw:
            raise DamagedError
        return stored

    def _decrypt(self, key_id: int, stored: bytes, header: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        if len(stored) < _NONCE + _TAG:
            raise DamagedError
        try:
            return self._ciphers[key_id].decrypt(stored[:_NONCE], stored[_NONCE:], header)
        except InvalidTag:
            raise DamagedError from None

    def _inflate(self, stored: bytes, raw: int) -> bytes:
        from zstandard import ZstdError, frame_content_size

        assert self._decompress is not None
        try:
            # The size stands in the frame of zstd too, and so much would be taken of the memory.
            if frame_content_size(stored) != raw:
                raise DamagedError
            return self._decompress.decompress(stored)
        except ZstdError:
            raise DamagedError from None

    def _load_zstd(self) -> None:
        try:
            import zstandard
        except ModuleNotFoundError as error:
            raise missing_extra(error, "zstd") from None
        self._compress = zstandard.ZstdCompressor(level=_LEVEL)
        self._decompress = zstandard.ZstdDecompressor()

    def _load_keys(self, keys: tuple[bytes, ...]) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError as error:
            raise missing_extra(error, "encryption") from None
        for key in reversed(keys):
            self.key_id = _key_id(key)
            self._ciphers[self.key_id] = AESGCM(key)


CLEAR: Final = Codec()


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The keys of a key file: 64 hexadecimal digits a line, the one that encrypts first.

    Lines below it hold older keys, for what is still in the log. `openssl rand -hex 32` makes one.
    """
    try:
        lines = path.read_text("ascii", errors="replace").split()
    except OSError as error:
        raise SettingsError(f"cannot read the key file {path}: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not _KEY_RE.fullmatch(line):  # the line itself is never shown
            raise SettingsError(
                f"{path}: key {number} is not 64 hexadecimal digits; make one with"
                " `openssl rand -hex 32`"
            )
    if not lines:
        raise SettingsError(f"{path} holds no key; make one with `openssl rand -hex 32`")
    return tuple(bytes.fromhex(line) for line in lines)


def _key_id(key: bytes) -> int:
    """Tells keys apart and tells nothing of them: the first four bytes of SHA-256, never zero."""
    return int.from_bytes(hashlib.sha256(b"tidegate key\0" + key).digest()[:4], "big") or 1
