"""Read a git repository's files: its objects, loose and packed with their deltas, and its index.

Nothing is written or locked. Everything is bounded, since a repository may be hostile: an object that is too large,
damaged or missing (a partial clone) is an `ObjectError`, and its evidence is unknown then.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from bisect import bisect_left
from collections import OrderedDict
from pathlib import Path
from typing import Final, NamedTuple

from echod.files import open_regular, read_regular

MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024
_MAX_PACKS: Final = 2_000
_MAX_ALTERNATES: Final = 8
_MAX_DELTAS: Final = 4_096
_CACHE_BYTES: Final = 32 * 1024 * 1024
_HEADER_BYTES: Final = 64
_INDEX_MAGIC: Final = b"\xfftOc"
_INDEX_VERSION: Final = 2
_LARGE_OFFSET: Final = 0x8000_0000
_KINDS: Final = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_OFFSET_DELTA, _NAME_DELTA = 6, 7
_INDEX_VERSIONS: Final = (2, 3)
_INDEX_HEADER_BYTES: Final = 12
_IS_EXTENDED, _STAGE = 0x4000, 0x3000


class ObjectError(Exception):
    """An object cannot be read."""


class GitObject(NamedTuple):
    """The kind (`commit`, `tree`, `blob` or `tag`) and the content of an object."""

    kind: str
    data: bytes


class ObjectStore:
    """The objects of a repository, including those of the repositories that it borrows from. For one thread."""

    def __init__(self, directory: Path, name_bytes: int = 20) -> None:
        self._name_bytes = name_bytes
        self._directories = list(_with_alternates(directory))
        self._packs: list[_Pack] | None = None
        self._cache: OrderedDict[tuple[int, int], GitObject] = OrderedDict()
        self._cached_bytes = 0

    def close(self) -> None:
        """Close the pack files."""
        for pack in self._packs or ():
            pack.close()
        self._packs = None

    def read(self, name: str) -> GitObject:
        """Return the object of this name.

        Raises:
            ObjectError: it is missing, damaged or too large.
        """
        try:
            found = self._read_packed(name) or self._read_loose(name)
        except (OSError, ValueError, IndexError, zlib.error, RecursionError) as error:
            raise ObjectError(f"{name}: {error}") from error
        if found is None:
            raise ObjectError(f"{name} is missing")
        return found

    def _read_loose(self, name: str) -> GitObject | None:
        for directory in self._directories:
            try:
                data = read_regular(directory / name[:2] / name[2:], MAX_OBJECT_BYTES)
            except (FileNotFoundError, NotADirectoryError):
                continue
            text = _inflate(data, MAX_OBJECT_BYTES + _HEADER_BYTES)
            header, _, content = text.partition(b"\0")
            kind, _, size = header.partition(b" ")
            if int(size) != len(content):
                raise ObjectError(f"{name} is damaged")
            return GitObject(kind.decode(), content)
        return None

    def _read_packed(self, name: str) -> GitObject | None:
        raw = bytes.fromhex(name)
        for pack in self._list_packs():
            offset = pack.find(raw)
            if offset is not None:
                return self._read_at(pack, offset)
        return None

    def _read_at(self, pack: _Pack, offset: int) -> GitObject:
        """Return the object at an offset. Deltas are followed to their base, then applied from there on."""
        deltas: list[tuple[int, bytes]] = []
        while True:
            cached = self._cached(pack, offset)
            if cached is not None:
                base = cached
                break
            kind, size, position = pack.header(offset)
            if size > MAX_OBJECT_BYTES or len(deltas) > _MAX_DELTAS:
                raise ObjectError("an object is too large")
            if kind in _KINDS:
                base = GitObject(_KINDS[kind], pack.inflate(position, size))
                self._keep(pack, offset, base)
                break
            if kind == _OFFSET_DELTA:
                distance, position = pack.base_distance(position)
                deltas.append((offset, pack.inflate(position, size)))
                offset -= distance
            elif kind == _NAME_DELTA:
                name = pack.data[position : position + self._name_bytes]
                deltas.append((offset, pack.inflate(position + self._name_bytes, size)))
                within = pack.find(name)
                if within is None:
                    base = self.read(name.hex())
                    break
                offset = within
            else:
                raise ObjectError("an object is of an unknown kind")
        for at, delta in reversed(deltas):
            base = GitObject(base.kind, apply_delta(base.data, delta))
            self._keep(pack, at, base)
        return base

    def _cached(self, pack: _Pack, offset: int) -> GitObject | None:
        key = (id(pack), offset)
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _keep(self, pack: _Pack, offset: int, found: GitObject) -> None:
        key = (id(pack), offset)
        if key in self._cache:
            return
        self._cache[key] = found
        self._cached_bytes += len(found.data)
        while self._cached_bytes > _CACHE_BYTES and self._cache:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= len(old.data)

    def _list_packs(self) -> list[_Pack]:
        if self._packs is None:
            self._packs = []
            for directory in self._directories:
                try:
                    names = sorted(file.name for file in (directory / "pack").iterdir() if file.name.endswith(".idx"))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                for name in names[:_MAX_PACKS]:
                    try:
                        self._packs.append(_Pack(directory / "pack" / name, self._name_bytes))
                    except (OSError, ValueError):
                        continue  # removed by a repack just now, or damaged: its objects are missing then
        return self._packs


class _Pack:
    """A pack file with its index (version 2)."""

    def __init__(self, index: Path, name_bytes: int) -> None:
        self._name_bytes = name_bytes
        self._index = _map(index)
        if self._index[:4] != _INDEX_MAGIC or int.from_bytes(self._index[4:8], "big") != _INDEX_VERSION:
            self._index.close()
            raise ValueError("an index of another version")
        try:
            self.data = _map(index.with_suffix(".pack"))
        except BaseException:
            self._index.close()
            raise
        self._count = self._fanout(255)
        self._names = 8 + 256 * 4
        self._offsets = self._names + self._count * (name_bytes + 4)

    def close(self) -> None:
        """Unmap the files."""
        self._index.close()
        self.data.close()

    def _fanout(self, first: int) -> int:
        return int.from_bytes(self._index[8 + first * 4 : 12 + first * 4], "big")

    def _name(self, number: int) -> bytes:
        at = self._names + number * self._name_bytes
        return self._index[at : at + self._name_bytes]

    def find(self, name: bytes) -> int | None:
        """Return the offset of an object; None if the pack does not have it."""
        low = self._fanout(name[0] - 1) if name[0] else 0
        high = self._fanout(name[0])
        number = bisect_left(range(self._count), name, low, high, key=self._name)
        if number >= high or self._name(number) != name:
            return None
        at = self._offsets + number * 4
        offset = int.from_bytes(self._index[at : at + 4], "big")
        if offset & _LARGE_OFFSET:
            at = self._offsets + self._count * 4 + (offset ^ _LARGE_OFFSET) * 8
            offset = int.from_bytes(self._index[at : at + 8], "big")
        return offset

    def header(self, offset: int) -> tuple[int, int, int]:
        """Return the kind of the object at an offset, its size, and the offset of what follows."""
        byte = self.data[offset]
        kind, size, shift = (byte >> 4) & 7, byte & 15, 4
        while byte & 0x80:
            offset += 1
            byte = self.data[offset]
            size |= (byte & 0x7F) << shift
            shift += 7
        return kind, size, offset + 1

    def base_distance(self, position: int) -> tuple[int, int]:
        """Return how far before a delta its base is, and the offset of what follows."""
        byte = self.data[position]
        distance = byte & 0x7F
        while byte & 0x80:
            position += 1
            byte = self.data[position]
            distance = ((distance + 1) << 7) | (byte & 0x7F)
        if distance < 1:
            raise ValueError("a delta of itself")
        return distance, position + 1

    def inflate(self, position: int, size: int) -> bytes:
        """Return the content at a position, which has this size."""
        compressed = self.data[position : position + size + size // 512 + 1024]
        content = _inflate(compressed, size)
        if len(content) != size:
            raise ValueError("a damaged object")
        return content


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """Return the content that a delta makes of its base.

    Raises:
        ValueError, IndexError: the delta does not belong to the base, or is damaged.
    """
    base_size, at = _varint(delta, 0)
    size, at = _varint(delta, at)
    if base_size != len(base) or size > MAX_OBJECT_BYTES:
        raise ValueError("a delta of another object")
    parts: list[bytes] = []
    while at < len(delta):
        instruction = delta[at]
        at += 1
        if instruction & 0x80:
            values = [0] * 7
            for bit in range(7):
                if instruction & (1 << bit):
                    values[bit] = delta[at]
                    at += 1
            start = int.from_bytes(values[:4], "little")
            length = int.from_bytes(values[4:], "little") or 0x10000
            if start + length > base_size:
                raise ValueError("a damaged delta")
            parts.append(base[start : start + length])
        elif instruction:
            parts.append(delta[at : at + instruction])
            at += instruction
        else:
            raise ValueError("a damaged delta")
    content = b"".join(parts)
    if len(content) != size:
        raise ValueError("a damaged delta")
    return content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


class IndexEntry(NamedTuple):
    """A file as git saw it last: the name of its content, and its size and times in the file system.

    The times are in nanoseconds since 1970. The size is the rest of a division by 2**32.
    """

    blob: str
    size: int
    modified_ns: int
    changed_ns: int


def read_index(data: bytes, name_bytes: int = 20) -> dict[bytes, IndexEntry]:
    """Return the entries of an index by path; none of an index of another version than 2 and 3, or a damaged one."""
    found: dict[bytes, IndexEntry] = {}
    if data[:4] != b"DIRC" or int.from_bytes(data[4:8], "big") not in _INDEX_VERSIONS:
        return found
    fields = struct.Struct(f">4I20xI{name_bytes}sH")
    at = _INDEX_HEADER_BYTES
    try:
        for _ in range(int.from_bytes(data[8:12], "big")):
            changed, changed_ns, modified, modified_ns, size, blob, flags = fields.unpack_from(data, at)
            begin = at + fields.size + 2 * bool(flags & _IS_EXTENDED)
            end = data.index(b"\0", begin)
            if not flags & _STAGE:  # not a conflict
                found[data[begin:end]] = IndexEntry(
                    blob.hex(), size, modified * 10**9 + modified_ns, changed * 10**9 + changed_ns
                )
            at += (end - at + 8) // 8 * 8
    except (struct.error, ValueError):
        return {}
    return found


def _inflate(data: bytes, limit: int) -> bytes:
    return zlib.decompressobj().decompress(data, limit) if limit else b""


def _map(path: Path) -> mmap.mmap:
    with open_regular(path) as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _with_alternates(directory: Path) -> list[Path]:
    """Return the directory of objects, and those that it names as further ones."""
    found = [directory]
    for one in found:
        try:
            lines = read_regular(one / "info" / "alternates", 65_536).decode("utf-8", "surrogateescape").split("\n")
        except OSError:
            continue
        for line in lines:
            if line.strip() and not line.startswith("#") and "\0" not in line and len(found) < _MAX_ALTERNATES:
                other = Path(os.path.normpath(one / line.strip()))
                if other not in found:
                    found.append(other)
    return found
