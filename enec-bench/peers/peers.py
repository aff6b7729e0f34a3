"""ENEC beside other lossless compressors on the same bytes in one run; `cargo xtask bench --peers` sets up the packages and starts it.

Data lies in memory. Every entry compresses and restores it once and is compared bit for bit before anything is timed; then all entries take
turns, and medians count. Throughput counts uncompressed bytes. Each peer runs as its users would run it; its class says how.
"""

import argparse
import ctypes
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy

# After the second round the heap has the size that the results of all peers need.
WARM_UP_ROUNDS = 2

ELEMENT_BYTES = {"BF16": 2, "F16": 2, "F32": 4}


class Peer:
    """A compressor with its settings, on `source` (bytes of elements of `dtype`); `restored` is as long and may be decompressed into."""

    name: str
    package: str
    how: str

    def __init__(self, source, restored, dtype, threads):
        self.source, self.restored, self.dtype, self.threads = source, restored, dtype, threads
        self.prepare()

    def prepare(self):
        """Imports the package and sets up what users set up once."""

    def renew(self):
        """Called before each `compress` and not timed."""

    def compress(self):
        """Returns parts that `decompress` takes."""
        raise NotImplementedError

    def decompress(self, parts):
        """Returns buffers that make up the source when joined."""
        raise NotImplementedError

    def compressed_bytes(self, parts):
        return sum(map(len, parts))


class ZipNN(Peer):
    name = "ZipNN"
    package = "zipnn"
    how = "ZipNN(input_format='byte', bytearray_dtype=..., threads=...), whole buffer, defaults otherwise; the input, which it overwrites, is renewed untimed"

    def prepare(self):
        torch = importlib.import_module("torch")
        # ZipNN names these types in a table when it is imported; torch before 2.1 lacks them. On bytes it uses neither them nor torch.
        for name in ("float8_e4m3fn", "float8_e5m2"):
            if not hasattr(torch, name):
                setattr(torch, name, name)
        dtype = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}[self.dtype]
        self.zipnn = importlib.import_module("zipnn").ZipNN(
            input_format="byte", bytearray_dtype=dtype, threads=self.threads
        )
        self.input = bytearray(len(self.source))

    def renew(self):
        memoryview(self.input)[:] = memoryview(self.source)

    def compress(self):
        return [self.zipnn.compress(self.input)]

    def decompress(self, parts):
        return [self.zipnn.decompress(parts[0])]


class Pieces(Peer):
    """A compressor without threads of its own: pieces of the data go to a pool (every package here releases Python's lock)."""

    # Large enough not to cost ratio, small enough for a balanced load and below every package's limit.
    PIECE_BYTES = 8 << 20

    def __init__(self, source, restored, dtype, threads):
        starts = range(0, len(source), self.PIECE_BYTES)
        self.pieces = [source[start : start + self.PIECE_BYTES] for start in starts]
        self.targets = [restored[start : start + self.PIECE_BYTES] for start in starts]
        self.map = ThreadPoolExecutor(threads).map if threads > 1 else map
        super().__init__(source, restored, dtype, threads)

    def compress(self):
        return list(self.map(self.compress_piece, self.pieces))

    def decompress(self, parts):
        return list(self.map(self.decompress_piece, parts, self.targets))

    def compress_piece(self, piece):
        raise NotImplementedError

    def decompress_piece(self, part, target):
        raise NotImplementedError


class Zstd(Pieces):
    package = "zstandard"
    level: int

    def prepare(self):
        self.zstandard = importlib.import_module("zstandard")

    # A context serves one thread at a time; making one is nothing beside a piece.
    def compress_piece(self, piece):
        return self.zstandard.ZstdCompressor(level=self.level).compress(piece)

    def decompress_piece(self, part, target):
        return self.zstandard.ZstdDecompressor().decompress(part)


class Zstd1(Zstd):
    name, level = "zstd 1", 1
    how = "ZstdCompressor(level=1), pieces of 8 MiB on a thread pool"


class Zstd3(Zstd):
    name, level = "zstd 3", 3
    how = "ZstdCompressor(level=3), pieces of 8 MiB on a thread pool"


class Lz4(Pieces):
    name = "lz4"
    package = "lz4"
    how = "lz4.block with default settings, pieces of 8 MiB on a thread pool"

    def prepare(self):
        self.block = importlib.import_module("lz4.block")

    def compress_piece(self, piece):
        return self.block.compress(piece, store_size=False)

    def decompress_piece(self, part, target):
        return self.block.decompress(part, uncompressed_size=len(target))


class Blosc2(Pieces):
    package = "blosc2"
    codec: str
    filters: tuple

    def prepare(self):
        self.blosc2 = importlib.import_module("blosc2")
        self.map = map  # It has threads of its own.
        filters = [self.blosc2.Filter.NOFILTER] * 6
        filters[-len(self.filters) :] = [self.blosc2.Filter[name] for name in self.filters]
        self.settings = {
            "codec": self.blosc2.Codec[self.codec],
            "clevel": 1,
            "filters": filters,
            "filters_meta": [0] * 6,
            "typesize": ELEMENT_BYTES[self.dtype],
            "nthreads": self.threads,
        }

    def compress_piece(self, piece):
        return self.blosc2.compress2(piece, **self.settings)

    def decompress_piece(self, part, target):
        self.blosc2.decompress2(part, dst=target, nthreads=self.threads)
        return target


class Blosc2Shuffle(Blosc2):
    name, codec, filters = "blosc2 shuffle, zstd 1", "ZSTD", ("SHUFFLE",)
    how = "compress2(SHUFFLE, ZSTD, clevel=1, typesize=element, nthreads=...), pieces of 8 MiB, decompress2 into a reused buffer"


class Blosc2Bytedelta(Blosc2):
    name, codec, filters = "blosc2 bytedelta, zstd 1", "ZSTD", ("SHUFFLE", "BYTEDELTA")
    how = Blosc2Shuffle.how.replace("SHUFFLE", "SHUFFLE + BYTEDELTA")


class Blosc2Bitshuffle(Blosc2):
    name, codec, filters = "blosc2 bitshuffle, lz4 1", "LZ4", ("BITSHUFFLE",)
    how = Blosc2Shuffle.how.replace("SHUFFLE, ZSTD", "BITSHUFFLE, LZ4")


class Pcodec(Pieces):
    name = "pcodec 8"
    package = "pcodec"
    how = "standalone.simple_compress at its default level 8, BF16 as u16, pieces of 8 MiB on a thread pool, decompressed into a reused buffer"

    def prepare(self):
        pcodec = importlib.import_module("pcodec")
        self.standalone, self.config = pcodec.standalone, pcodec.ChunkConfig()
        self.number = {"BF16": numpy.uint16, "F16": numpy.float16, "F32": numpy.float32}[self.dtype]

    def compress_piece(self, piece):
        return self.standalone.simple_compress(piece.view(self.number), self.config)

    def decompress_piece(self, part, target):
        self.standalone.simple_decompress_into(part, target.view(self.number))
        return target


class Lmz(Pieces):
    name = "lmz"
    package = "lmzip"
    how = "encode_chunk and decode_chunk as its compress() and decompress() call them (chunks of 8 MiB, checksums) on a thread pool, into a reused buffer"

    def prepare(self):
        self.codec = importlib.import_module("lmz.codec")
        backends = importlib.import_module("lmz").backends()
        if not backends["kernel"].startswith("native"):
            raise ImportError(f"its kernels were not compiled ({backends['kernel']}): install a C compiler")
        self.kind = self.codec.KIND_BF16 if self.dtype == "BF16" else self.codec.KIND_BYTES

    def compress_piece(self, piece):
        parts, codec, flags, checksum = self.codec.encode_chunk(piece, ELEMENT_BYTES[self.dtype], kind=self.kind)
        return b"".join(parts), codec, flags, checksum

    def decompress_piece(self, part, target):
        payload, codec, flags, checksum = part
        return self.codec.decode_chunk(
            payload, codec, ELEMENT_BYTES[self.dtype], flags, len(target), checksum, out=target
        )

    def compressed_bytes(self, parts):
        return sum(len(payload) for payload, *_ in parts)


PEERS = [ZipNN, Zstd1, Zstd3, Lz4, Blosc2Shuffle, Blosc2Bytedelta, Blosc2Bitshuffle, Pcodec, Lmz]


class PeerRun:
    """The timings of one peer with one number of threads."""

    def __init__(self, peer):
        self.peer, self.name, self.threads = peer, peer.name, peer.threads
        self.seconds = []

    def warm_up(self):
        self.peer.renew()
        parts = self.peer.compress()
        self.compressed_bytes = self.peer.compressed_bytes(parts)
        self.peer.restored.fill(0x5A)
        compare(self.name, self.peer.source, self.peer.decompress(parts))

    def turn(self):
        self.peer.renew()
        start = time.perf_counter()
        parts = self.peer.compress()
        compressed = time.perf_counter()
        buffers = self.peer.decompress(parts)
        self.seconds.append((compressed - start, time.perf_counter() - compressed))
        del parts, buffers  # Freed here, not in the next turn's time.

    def record(self):
        size = len(self.peer.source)
        return {
            "backend": self.name,
            "version": importlib.metadata.version(self.peer.package),
            "how": self.peer.how,
            "threads": self.threads,
            "ratio": size / self.compressed_bytes,
            **throughput([size / encode / 1e9 for encode, _ in self.seconds], [size / decode / 1e9 for _, decode in self.seconds]),
        }


# Those of ENEC.
CODECS = ["enec", "cascade"]


class EnecRun:
    """The timings of one of ENEC's codecs, parameter search and checksums included, from `enec-bench` with one repetition a turn."""

    how = "Codec: parameter search, kernels, validation and checksums, tensor by tensor, into reused buffers"

    def __init__(self, binary, path, dtype, threads, codec):
        self.name, self.threads, self.results = f"ENEC {codec}", threads, []
        self.out = path.with_suffix(f".{codec}.{threads}.json")
        self.command = [binary, "--backend", "cpu", "--data", path, "--dtype", dtype, "--threads", str(threads)]
        self.command += ["--codec", codec, "--repetitions", "1", "--out", self.out]

    def warm_up(self):
        """`enec-bench` warms up and compares by itself, in every turn."""

    def turn(self):
        if subprocess.run(self.command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"error: `{' '.join(map(str, self.command))}` failed")
        wanted = {"what": "codec", "place": "file"}
        results = [record for record in json.loads(self.out.read_text()) if wanted.items() <= record.items()]
        if len(results) != 1:
            sys.exit(f"error: {self.out}: {len(results)} records with {wanted}; expected one")
        self.results += results

    def record(self):
        last = self.results[-1]
        return {
            "backend": self.name,
            "version": last["commit"],
            "how": self.how,
            "threads": self.threads,
            "ratio": last["ratio"],
            **throughput([result["encode_gbps"] for result in self.results], [result["decode_gbps"] for result in self.results]),
        }


def throughput(encode, decode):
    return {
        "encode_gbps": median(encode),
        "decode_gbps": median(decode),
        "encode_gbps_range": [min(encode), max(encode)],
        "decode_gbps_range": [min(decode), max(decode)],
    }


def compare(name, source, buffers):
    start = 0
    for buffer in buffers:
        buffer = numpy.frombuffer(buffer, numpy.uint8)
        if not numpy.array_equal(buffer, source[start : start + len(buffer)]):
            sys.exit(f"error: {name} did not give back its input near byte {start}")
        start += len(buffer)
    if start != len(source):
        sys.exit(f"error: {name} gave back {start} of {len(source)} bytes")


def aligned(size):
    """Bytes at a 64-byte boundary, all written once so that they are in memory."""
    buffer = numpy.empty(size + 63, numpy.uint8)
    buffer.fill(0)
    return buffer[-buffer.ctypes.data % 64 :][:size]


def synthetic(size):
    """Generated BF16 weights: Gaussian, each row of 4,096 with its own scale, as trained matrices have."""
    random = numpy.random.default_rng(0)
    elements = numpy.empty(size // 2, numpy.uint16)
    for start in range(0, len(elements), 4096):
        row = elements[start : start + 4096]
        scale = numpy.float32(0.02 * numpy.exp(0.3 * random.standard_normal()))
        bits = (scale * random.standard_normal(len(row), numpy.float32)).view(numpy.uint32)
        row[:] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # Rounded to nearest, ties to even.
    return "BF16", {"weight": elements.view(numpy.uint8)}


def largest_dtype(path):
    """The tensors of a safetensors file whose element type has the most bytes: the type and, in the file's order, their bytes by name."""
    content = numpy.memmap(path, numpy.uint8, "r")
    header_bytes = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8 : 8 + header_bytes].tobytes())
    groups = {dtype: {} for dtype in ELEMENT_BYTES}
    tensors = [(name, entry) for name, entry in header.items() if name != "__metadata__" and entry["dtype"] in groups]
    for name, entry in sorted(tensors, key=lambda tensor: tensor[1]["data_offsets"]):
        start, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        groups[entry["dtype"]][name] = content[start:end]
    sizes = {dtype: sum(map(len, tensors.values())) for dtype, tensors in groups.items()}
    dtype = max(sizes, key=sizes.get)
    if not sizes[dtype]:
        sys.exit(f"error: {path}: no tensor of {', '.join(ELEMENT_BYTES)}")
    return dtype, groups[dtype]


def write_safetensors(path, dtype, tensors):
    header, offset = {}, 0
    for name, content in tensors.items():
        end = offset + len(content)
        header[name] = {"dtype": dtype, "shape": [len(content) // ELEMENT_BYTES[dtype]], "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for content in tensors.values():
            file.write(content)


def sources(arguments):
    """Name, element type and tensors of everything that `--data` names."""
    for data in arguments.data:
        if data.startswith("synthetic:"):
            digits = data.removeprefix("synthetic:").upper().removesuffix("B")
            unit = {"K": 10**3, "M": 10**6, "G": 10**9}.get(digits[-1:], 1)
            digits = digits.rstrip("KMG")
            if not digits.isdigit():
                sys.exit(f"error: `{data}`: expected a size such as `synthetic:256M`")
            yield data, *synthetic(int(digits) * unit)
            continue
        path = Path(data)
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        if not files or not files[0].is_file():
            sys.exit(f"error: {data}: no safetensors file here")
        for file in files:
            yield file.stem, *largest_dtype(file)


def measure(arguments, peers, folder, name, dtype, tensors):
    """The records of one source: every peer and ENEC, with every number of threads, in turns."""
    path = folder / "data.safetensors"
    write_safetensors(path, dtype, tensors)
    source = aligned(sum(map(len, tensors.values())))
    numpy.concatenate(list(tensors.values()), out=source)
    source.flags.writeable = False
    restored = aligned(len(source))
    runs = [EnecRun(arguments.enec, path, dtype, threads, codec) for threads in arguments.threads for codec in CODECS]
    runs += [PeerRun(peer(source, restored, dtype, threads)) for peer in peers for threads in arguments.threads]
    for _ in range(WARM_UP_ROUNDS):
        for run in runs:
            progress(f"{name}: warming up {run.name}, {run.threads} threads")
            run.warm_up()
    for repetition in range(arguments.repetitions):
        for run in runs:
            progress(f"{name}: repetition {repetition + 1} of {arguments.repetitions}: {run.name}, {run.threads} threads")
            run.turn()
    progress("")
    common = {
        "data": name,
        "dtype": dtype,
        "bytes": len(source),
        "tensors": len(tensors),
        "repetitions": arguments.repetitions,
        "warm_pages": arguments.warm,
    }
    # The machine, and the copies of the same bytes by as many threads in the last turn.
    keys = ("device", "cpu", "commit", "memcpy_gbps", "nt_copy_gbps")
    machine = {run.threads: {key: run.results[-1][key] for key in keys} for run in runs if isinstance(run, EnecRun)}
    return [common | machine[run.threads] | run.record() for run in runs]


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def print_table(records):
    first = records[0]
    print(f"\n{first['data']}: {first['bytes'] / 1e6:.1f} MB of {first['dtype']}, {first['tensors']} tensors;", end=" ")
    print(f"{first['cpu']}, commit {first['commit']}; medians of {first['repetitions']} (least-most)")
    print(f"{'':25} {'threads':>7} {'ratio':>7} {'compress GB/s':>22} {'decompress GB/s':>22}   enec is faster by       cascade is faster by")
    records = sorted(records, key=lambda record: record["threads"])
    ours = {(record["backend"], record["threads"]): record for record in records}
    for record in records:
        line = f"{record['backend']:25} {record['threads']:7} {record['ratio']:7.3f}"
        for key in ("encode_gbps", "decode_gbps"):
            least, most = record[key + "_range"]
            line += f" {f'{record[key]:.3f} ({least:.2f}-{most:.2f})':>22}"
        for codec in CODECS:
            for key in ("encode_gbps", "decode_gbps"):
                line += f" {ours[f'ENEC {codec}', record['threads']][key] / record[key]:8.1f} x"
        print(line, flush=True)


def keep_memory_warm():
    """Makes freed memory stay with the process, so that peers that allocate their results do not pay for fresh pages in every turn.

    ENEC's figures are of warm buffers too. Without this ZipNN, for one, compresses at about half the speed.
    """
    m_trim_threshold, m_mmap_max, m_arena_max = -1, -4, -8  # Of glibc's malloc.h.
    try:
        libc = ctypes.CDLL(None)
        # One arena: those of threads that end are given back whatever the threshold.
        return all([libc.mallopt(m_mmap_max, 0), libc.mallopt(m_trim_threshold, -1), libc.mallopt(m_arena_max, 1)])
    except (AttributeError, OSError):
        return False


def parse_arguments():
    parser = argparse.ArgumentParser(prog="cargo xtask bench --peers", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--data", nargs="+", default=["synthetic:256M"], metavar="FILE|FOLDER|synthetic:SIZE",
        help="of a file, the tensors of the element type with the most bytes (default: synthetic:256M, which is BF16)")
    add("--threads", type=lambda text: [int(number) for number in text.split(",")], default=sorted({1, os.cpu_count()}),
        metavar="N,...", help="default: 1 and one per core")
    add("--repetitions", type=int, default=7, help="turns of each entry; the median counts (default: 7)")
    add("--only", metavar="NAME,...", help="only peers whose names contain one of these")
    add("--default-allocator", action="store_true", help="leave malloc as it is: peers that allocate results get fresh pages")
    add("--out", type=Path, metavar="FILE", help="write the results to this file as JSON")
    add("--allow-missing", action="store_true", help="succeed without peers that cannot be set up")
    # From `cargo xtask`.
    add("--enec", type=Path, required=True, help=argparse.SUPPRESS)
    add("--folder", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if not arguments.enec.is_file():
        sys.exit(f"error: {arguments.enec}: no program here; `cargo build --release --package enec-bench` builds it")
    wanted = arguments.only.lower().split(",") if arguments.only else [""]
    peers, missing = [], []
    for peer in PEERS:
        if not any(name in peer.name.lower() for name in wanted):
            continue
        try:
            peer(numpy.zeros(64, numpy.uint8), numpy.zeros(64, numpy.uint8), "BF16", 1)
            peers.append(peer)
        except Exception as error:  # A package that is half installed fails in its own way.
            missing.append(f"{peer.name} (package `{peer.package}`): {error}")
    for text in missing:
        print(f"{'warning' if arguments.allow_missing else 'error'}: cannot set up {text}", file=sys.stderr)
    if missing and not arguments.allow_missing:
        sys.exit("error: `--allow-missing` measures without them")

    arguments.warm = not arguments.default_allocator and keep_memory_warm()
    print(f"ENEC {' and '.join(CODECS)}: {EnecRun.how}")
    for peer in peers:
        print(f"{peer.name} ({peer.package} {importlib.metadata.version(peer.package)}): {peer.how}")
    print("malloc", "keeps freed memory: results go to warm pages" if arguments.warm else "as it is: large results go to fresh pages")
    records = []
    arguments.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for name, dtype, tensors in sources(arguments):
            measured = measure(arguments, peers, Path(folder), name, dtype, tensors)
            print_table(measured)
            records += measured
            # After every source: a long run that is stopped keeps what it has.
            if arguments.out:
                arguments.out.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
