"""Read or estimate the length of a recording from its bytes, in seconds.

WAV (bytes a second in its header), MP3 (bit rate in the first frame), FLAC (samples and their rate)
and MP4 with its kin, MOV and M4A (duration in the movie header). Other and damaged files count as
of the lowest usual quality, so that the estimate is not too short.
"""

from __future__ import annotations

import struct

SPEECH = 4_000  # Bytes a second of sound of unknown length: speech at 32 kbit/s
FILM = 62_500  # Bytes a second of a film of unknown length: 500 kbit/s, a small and still one
LONGEST = 100 * 3_600.0  # Most seconds: a header that says more is damaged

_MP3_RATES = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Kilobits a second by the index in a frame of layer III, of MPEG 1 and of MPEG 2 and 2.5."""

_MP3_SAMPLES = (44_100, 48_000, 32_000)
"""Samples a second of MPEG 1; half of it in MPEG 2, a quarter in 2.5."""


def seconds(raw: bytes, *, film: bool) -> float:
    """Return the length of a recording, with pictures if `film`."""
    try:
        found = _told(raw)
    except (struct.error, IndexError, ZeroDivisionError):
        found = None
    if found is None or not 0 < found <= LONGEST:
        return len(raw) / (FILM if film else SPEECH)
    return found


def _told(raw: bytes) -> float | None:
    if raw[:4] == b"RIFF" and raw[8:12] == b"WAVE":
        at = raw.find(b"fmt ", 12, 4_096)
        rate: int = struct.unpack_from("<I", raw, at + 16)[0]
        return len(raw) / rate if at > 0 else None
    if raw[:4] == b"fLaC":
        rate = int.from_bytes(raw[18:21], "big") >> 4
        return (int.from_bytes(raw[21:26], "big") & 0xF_FFFF_FFFF) / rate
    if raw[4:8] == b"ftyp":
        return _movie(raw)
    if raw[:3] == b"ID3" or (raw[:1] == b"\xff" and raw[1] & 0xE0 == 0xE0):
        return _mp3(raw)
    return None


def _movie(raw: bytes) -> float | None:
    at = raw.find(b"mvhd")
    if at < 0:
        return None
    if raw[at + 4] == 1:
        scale, length = struct.unpack_from(">IQ", raw, at + 24)
    else:
        scale, length = struct.unpack_from(">II", raw, at + 16)
    return float(length / scale)


def _mp3(raw: bytes) -> float | None:
    at = 0
    if raw[:3] == b"ID3":  # its size has seven bits a byte
        at = 10 + sum((raw[6 + i] & 0x7F) << 7 * (3 - i) for i in range(4))
    if raw[at] != 0xFF or raw[at + 1] & 0xE0 != 0xE0:
        return None
    version = raw[at + 1] >> 3 & 3  # 3 for MPEG 1, 2 for MPEG 2, 0 for 2.5
    mark = max(raw.find(b"Xing", at, at + 64), raw.find(b"Info", at, at + 64))
    if mark >= 0 and raw[mark + 7] & 1:  # the number of frames, which bit rates that change need
        frames: int = struct.unpack_from(">I", raw, mark + 8)[0]
        rate = _MP3_SAMPLES[raw[at + 2] >> 2 & 3] / {3: 1, 2: 2}.get(version, 4)
        return frames * (1_152 if version == 3 else 576) / rate
    return (len(raw) - at) / (_MP3_RATES[1 if version == 3 else 2][raw[at + 2] >> 4] * 125)
