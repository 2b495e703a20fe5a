"""Files on object stores and web servers, given by a URL and read through fsspec.

Text is streamed. For Parquet files, only the bytes of the requested columns are fetched, by range requests; from
a server that does not support them, the whole file is copied to the temporary directory.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn, cast
from urllib.parse import urlsplit

from linsep.data.files.datafile import DataFile, copied
from linsep.data.files.source import refuse
from linsep.errors import BadInput, LinsepError, Refused

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|[A-Za-z][A-Za-z0-9+.-]+::")
_LOCAL = re.compile(r"(file|local)://", re.IGNORECASE)
_BUFFER = 1 << 20
#: Package to install for a protocol, where its name differs from the protocol.
_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("hdfs", "arrow_hdfs"), "pyarrow"),
    **dict.fromkeys(("github", "gist", "webhdfs", "dbfs"), "requests"),
    **{"smb": "smbprotocol", "hf": "huggingface_hub", "oci": "ocifs", "oss": "ossfs"},
    **{"webdav": "webdav4", "git": "pygit2", "dvc": "dvc", "lakefs": "lakefs-spec"},
}
#: Keys of fsspec's ``info`` whose values change when a file is rewritten, in lower case without "-" and "_".
_EVIDENCE = frozenset(
    "etag contentmd5 md5 md5hash md5checksum crc crc32c checksum sha sha256 hash hex digest blobid "
    "generation versionid mtime modified modify lastmodified updated modificationtime".split()
)


def is_url(source: object) -> bool:
    """Return whether a source is a URL that fsspec reads, such as ``s3://bucket/key``."""
    return isinstance(source, str) and _URL.match(source) is not None


def local_path(url: str) -> str | None:
    """Return the path of a ``file://`` URL, or None for other URLs."""
    if not _LOCAL.match(url) or "::" in url:
        return None
    return _LOCAL.sub("", url)


def shown(url: str) -> str:
    """Return a URL without the secrets it may contain: user names and passwords, queries and fragments."""
    parts = []
    for one in url.split("::"):
        found = urlsplit(one)
        place = found.netloc.rpartition("@")[2]
        parts.append(found._replace(netloc=place, query="", fragment="").geturl())
    return "::".join(parts)


def file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path of the file in it."""
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError as error:
        raise Refused(
            f"{shown(url)}: files elsewhere are read through fsspec: pip install 'fsspec[http]'."
        ) from error
    protocol = re.split(r"://|::", url, maxsplit=1)[0].lower()
    try:
        return cast("tuple[Any, str]", url_to_fs(url, **options))
    except ImportError as error:
        package = _PACKAGES.get(protocol, protocol)
        raise Refused(
            f"{shown(url)}: the protocol {protocol}:// needs a package that is not installed ({error}): "
            f"pip install {package}."
        ) from error
    except ValueError as error:
        if "not known" not in str(error):
            _explain(shown(url), error)
        raise BadInput(
            f"{shown(url)}: fsspec knows no protocol {protocol}://; it knows s3, gs, abfs, https, sftp and others. A "
            "path of this machine needs none."
        ) from error
    except TypeError as error:
        raise BadInput(
            f"{shown(url)}: the file system does not take these storage_options, {', '.join(options) or 'none'} "
            f"({error})."
        ) from error
    except Exception as error:
        _explain(shown(url), error)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Convert any error of a file system to BadFile with the name of the file."""
    try:
        yield
    except (LinsepError, MemoryError):
        raise
    except Exception as error:
        _explain(name, error)


def _explain(name: str, error: Exception) -> NoReturn:
    causes = list(_causes(error))
    status = next((s for s in (getattr(one, "status", None) for one in causes) if s), None)
    denied = any(isinstance(one, PermissionError) for one in causes)
    if status in (401, 403) or denied or "NoCredentials" in type(causes[-1]).__name__:
        problem = (
            f"access is denied ({_words(causes[-1])}); give credentials by storage_options={{...}} (--storage-option "
            "KEY=VALUE), or by the environment as the file system documents it."
        )
    elif status in (404, 410) or (isinstance(error, FileNotFoundError) and len(causes) == 1):
        problem = "there is no such file; check the URL."
    elif isinstance(error, IsADirectoryError):
        problem = "a directory, not a file."
    else:
        problem = (
            f"the file cannot be read, or the connection was lost ({_words(causes[-1])}); try again. Nothing of it "
            "was kept."
        )
    try:
        refuse(name, problem)
    except LinsepError as refusal:
        raise refusal from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _words(error: BaseException) -> str:
    text = " ".join(shown(word) if is_url(word) else word for word in str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


@dataclass(frozen=True)
class RemoteFile(DataFile):
    """Remote file that fsspec opens; ``path`` is its URL and ``name`` the URL without secrets."""

    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def _found(self) -> tuple[Any, str]:
        return file_system(self.path, self.options)

    def _info(self) -> tuple[Any, str, dict[str, Any]]:
        """Return the file system, the path in it, and its current information about the file."""
        fs, path = self._found()
        with explained(str(self)):
            fs.invalidate_cache()  # fsspec caches directory listings
            return fs, path, fs.info(path)

    @property
    def size(self) -> int | None:
        """Size in bytes, or None if the server does not report it."""
        size = self._info()[2].get("size")
        return None if size is None else int(size)

    def stream(self) -> BinaryIO:
        """Open the file for sequential reading, in a single request over HTTP."""
        fs, path = self._found()
        one_request = {"block_size": 0} if {"http", "https"} & _protocols(fs) else {}
        with explained(str(self)):
            raw = fs.open(path, "rb", **one_request)
        return io.BufferedReader(_Bytes(raw, str(self)), _BUFFER)

    def head(self, count: int) -> bytes:
        """Return the first ``count`` bytes, without reading ahead."""
        fs, path = self._found()
        with explained(str(self)), fs.open(path, "rb", cache_type="none") as raw:
            found: bytes = raw.read(count)
        return found

    @contextmanager
    def random_access(self) -> Iterator[Any]:
        """Provide a seekable stream, or the path of a local copy if the server does not support range requests."""
        fs, path = self._found()
        with explained(str(self)):
            raw = fs.open(path, "rb", cache_type="none")
        with _Bytes(raw, str(self)) as stream:
            if _sends_parts(stream):
                stream.seek(0)
                yield stream
                return
        with self.on_disk() as copy:
            yield copy.path

    @contextmanager
    def on_disk(self) -> Iterator[DataFile]:
        """Provide a temporary local copy."""
        with self.stream() as stream, copied(stream, str(self), self.partition) as copy:
            yield copy

    def absolute(self) -> DataFile:
        """Return the file itself: a URL does not depend on the current directory."""
        return self

    def state(self) -> list[Any] | None:
        """Return URL, size, and checksums or time of writing; None if the server reports neither."""
        fs, path, info = self._info()
        evidence = {name: str(value) for name, value in info.items() if _is_evidence(name, value)}
        if not evidence:
            try:
                evidence = {"modified": str(fs.modified(path))}
            except Exception:  # not every file system reports it
                return None
        return [self.path, info.get("size"), sorted(evidence.items())]


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def _is_evidence(name: str, value: Any) -> bool:
    """Return whether a value of ``info`` changes with the content. A weak ETag may not, so it does not count."""
    known = name.lower().replace("-", "").replace("_", "") in _EVIDENCE
    return known and bool(value) and not str(value).startswith("W/")


def _sends_parts(stream: _Bytes) -> bool:
    """Return whether the server supports range requests, tested by reading the last 8 bytes."""
    if stream.size is None:
        return False
    try:
        stream.seek(max(0, stream.size - 8))
        return len(stream.read(8)) == min(8, stream.size)
    except BadInput as error:
        if isinstance(error.__cause__, ValueError | NotImplementedError | io.UnsupportedOperation):
            return False
        raise


class _Bytes(io.RawIOBase):
    """Stream of a remote file that raises BadFile with its name on an error or a premature end."""

    def __init__(self, raw: Any, name: str) -> None:
        self._raw, self._name, self._at = raw, name, 0
        self.size: int | None = getattr(raw, "size", None)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the size is known; that does not imply that the server supports range requests."""
        return self.size is not None

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position and return it."""
        if self.size is None:
            raise io.UnsupportedOperation("the size is unknown")
        origin = (0, self._at, self.size)[whence]
        self._at = max(0, origin + offset)
        return self._at

    def readinto(self, room: Any) -> int:
        """Read the next bytes into ``room`` and return their number."""
        if self.size is not None and self._at >= self.size:
            return 0
        with explained(self._name):
            if self._raw.tell() != self._at:
                self._raw.seek(self._at)
            found = self._raw.read(len(room))
        if not found and self.size is not None:
            refuse(
                self._name,
                f"the file ends at byte {self._at:,} of {self.size:,}: the connection was lost, or the file has "
                "changed; read it again. Nothing of it was kept.",
            )
        room[: len(found)] = found
        self._at += len(found)
        return len(found)

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self._raw.close()
        super().close()
