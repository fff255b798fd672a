#!/usr/bin/env python3
"""extract_vmlinux.py BZIMAGE OUT: writes the ELF kernel that a bzImage (boot protocol 2.08 or later) carries.

QEMU enters an ELF kernel directly (PVH), which spares the guest seconds of emulated decompression.
"""
import gzip
import lzma
import os
import struct
import subprocess
import sys

SETUP_SECTORS = 0x1F1  # u8, 0 means 4
PAYLOAD = 0x248  # u32 offset into the protected-mode part, u32 length


def decompress(payload: bytes) -> bytes:
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return gzip.decompress(payload[:-4])
    if payload.startswith(b"\x28\xb5\x2f\xfd"):  # zstd; the last four bytes are the unpacked size
        return subprocess.run(["zstd", "-dc"], input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
    sys.exit(f"extract_vmlinux: unknown compression {payload[:6].hex()}")


def main() -> None:
    source, target = sys.argv[1:3]
    with open(source, "rb") as file:
        image = file.read()
    protected_mode = ((image[SETUP_SECTORS] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    kernel = decompress(image[protected_mode + offset : protected_mode + offset + length])
    if not kernel.startswith(b"\x7fELF"):
        sys.exit("extract_vmlinux: the payload is no ELF file")
    part = f"{target}.part.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(kernel)
    os.rename(part, target)


main()
