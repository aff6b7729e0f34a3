#!/usr/bin/env python3
"""Cuts minilm-sample/model.safetensors out of the model.safetensors (FP32) of sentence-transformers/all-MiniLM-L6-v2.

    python3 make_sample.py SOURCE minilm-sample/model.safetensors

Standard library only. The output has the layout that the safetensors library writes: tensors by falling element size,
then by name, header padded with spaces to a multiple of 8.
"""
import hashlib
import json
import struct
import sys
from array import array

SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WORDS = "embeddings.word_embeddings.weight"
ROWS = range(2000, 2512)  # ordinary words; the first thousand rows are unused tokens and single characters
NAMES = ("embeddings.position_ids", "embeddings.LayerNorm.", "embeddings.token_type_embeddings.", WORDS, "encoder.layer.0.")


def bf16(raw):
    """FP32 bytes to BF16 bytes, round to nearest, ties to even. The source holds no NaN."""
    words = array("I", raw)
    assert words.itemsize == 4 and sys.byteorder == "little"
    return array("H", ((w + 0x7FFF + (w >> 16 & 1)) >> 16 for w in words)).tobytes()


def main(source, output):
    data = open(source, "rb").read()
    digest = hashlib.sha256(data).hexdigest()
    if digest != SOURCE_SHA256:
        raise SystemExit(f"{source}: SHA-256 is {digest}, expected {SOURCE_SHA256}")
    (length,) = struct.unpack_from("<Q", data)
    tensors = []
    for name, entry in json.loads(data[8:8 + length]).items():
        if not name.startswith(NAMES):
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype, shape = entry["dtype"], entry["shape"]
        if name == WORDS:
            row = (end - begin) // shape[0]
            begin, end = begin + ROWS.start * row, begin + ROWS.stop * row
            shape = [len(ROWS), *shape[1:]]
        raw = data[begin:end]
        if dtype == "F32":
            dtype, raw = "BF16", bf16(raw)
        tensors.append((name, dtype, shape, raw))
    tensors.sort(key=lambda t: (t[1] != "I64", t[0]))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(output, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(raw for *_, raw in tensors)


main(*sys.argv[1:])
