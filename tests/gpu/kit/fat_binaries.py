"""Thin the CUDA fat binaries of a shared library to the code of one GPU architecture."""
import mmap
import struct

KEEP_ARCH = 90  # Hopper


def elf_sections(d):
    shoff = struct.unpack_from("<Q", d, 0x28)[0]
    esz, n, strndx = struct.unpack_from("<HHH", d, 0x3A)
    raw = [struct.unpack_from("<IIQQQQ", d, shoff + i * esz) for i in range(n)]
    base = raw[strndx][4]
    out = {}
    for name, _t, _f, _a, off, size in raw:
        end = d.find(b"\0", base + name)
        out[bytes(d[base + name:end]).decode()] = (off, size)
    return out


def thin_fatbin(path, drop_jit=False):
    """Drop, in place, the machine code that an sm_90 GPU never loads.

    .nv_fatbin holds one container per translation unit, a container one entry
    per architecture, and the driver picks the entry that matches the GPU.
    Each container is rewritten with the wanted entries only (what nvcc makes
    when one architecture is named), at the same address, its size field set;
    the bytes freed behind it become zero, so nothing else in the file moves
    and it compresses well.  Where a container has sm_90 code only that stays;
    one without keeps its newest usable PTX (the driver compiles it) unless
    drop_jit; one with neither (code for other GPUs alone) keeps its smallest
    entry, which this GPU ignores as it did before.
    Returns (bytes kept, bytes dropped)."""
    total_kept = total = 0
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as d:
        sec = elf_sections(d).get(".nv_fatbin")
        if not sec:
            return 0, 0
        pos, end = sec[0], sec[0] + sec[1]
        while pos < end:
            magic, = struct.unpack_from("<I", d, pos)
            if magic == 0:
                pos += 8
                continue
            if magic != 0xBA55ED50:
                raise SystemExit(f"{path}: unknown fat binary at {pos:#x}: {magic:#x}")
            _v, hsize, fsize = struct.unpack_from("<HHQ", d, pos + 4)
            q, stop, entries = pos + hsize, pos + hsize + fsize, []
            while q < stop:
                kind, _u, h = struct.unpack_from("<HHI", d, q)
                size, = struct.unpack_from("<Q", d, q + 8)
                arch, = struct.unpack_from("<I", d, q + 28)
                if kind not in (1, 2) or h < 64 or q + h + size > stop:
                    raise SystemExit(f"{path}: unknown entry at {q:#x}: kind {kind}")
                entries.append((kind, arch, q, h + size))
                q += h + size
            keep = [e for e in entries if e[0] == 2 and e[1] == KEEP_ARCH]
            if not keep and not drop_jit:
                ptx = max((e[1] for e in entries if e[0] == 1 and e[1] <= KEEP_ARCH), default=None)
                keep = [e for e in entries if e[0] == 1 and e[1] == ptx]
            if not keep:
                keep = [min(entries, key=lambda e: e[3])]
            body = b"".join(d[o:o + n] for _, _, o, n in keep)
            d[pos + hsize:stop] = body + bytes(fsize - len(body))
            struct.pack_into("<Q", d, pos + 8, len(body))
            total_kept += len(body)
            total += fsize
            pos = stop
    return total_kept, total - total_kept
